import { RoceAssignmentRow } from "../../../shared/api/sites.ts";
import type { RowForm } from "./row-form.ts";

/** The rows of a file for `roce import`. */
export const ROCE_ROWS: RowForm = {
  columns: { hostname: "needed", interface: "needed", ipv4_cidr: "needed" },
  itemOf: (values) => values,
  faultsOf: (item) => RoceAssignmentRow.safeParse(item).error?.issues ?? [],
  unique: [["hostname", "interface"], ["ipv4_cidr"]],
};
