import { type Part, partFile } from "./part.ts";

/** Sees to it that a first boot which was cut short is ended by the next one, and that the agent comes up once its hub can be reached (lifecycle 9). */
export const bootstrapUnit: Part = {
  name: "01-bootstrap-unit.sh",
  contentType: "text/cloud-boothook",
  render: () => partFile("bootstrap-unit.sh"),
};
