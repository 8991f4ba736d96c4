import { type Part, partFile } from "./part.ts";

export const bootstrapUnit: Part = {
  name: "01-bootstrap-unit.sh",
  contentType: "text/cloud-boothook",
  render: () => partFile("bootstrap-unit.sh"),
};
