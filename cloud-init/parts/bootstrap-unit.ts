import { type Part, partFile } from "./part.ts";

/** Renders the boothook that installs muster-bootstrap.service, which completes an interrupted first boot and starts the agent (lifecycle 9). */
export const bootstrapUnit: Part = {
  name: "01-bootstrap-unit.sh",
  contentType: "text/cloud-boothook",
  render: () => partFile("bootstrap-unit.sh"),
};
