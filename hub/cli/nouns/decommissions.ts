import { col, type Noun, wide } from "./noun.ts";
import { PROGRESS_COLUMNS } from "./progress-columns.ts";

export const DECOMMISSIONS = {
  plural: "decommissions",
  singular: "decommission",
  short: ["dec"],
  about: "drains, cleanings, reimages, releases and removes of nodes",
  lists: ["listDecommissions"],
  reads: ["getDecommission"],
  id: "decommission_id",
  label: "hostname",
  columns: [col("HOSTNAME", "hostname"), col("MODE", "mode"), ...PROGRESS_COLUMNS, wide("ID", "decommission_id")],
  events: ["node.decommission.*"],
} as const satisfies Noun;
