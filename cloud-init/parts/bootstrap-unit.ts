import { type Part, partFile } from "./part.ts";

/** Installs a unit that completes an interrupted first boot, and starts the agent once its hub can be reached (lifecycle 9). */
export const bootstrapUnit: Part = {
  name: "01-bootstrap-unit.sh",
  contentType: "text/cloud-boothook",
  render: () => partFile("bootstrap-unit.sh"),
};
