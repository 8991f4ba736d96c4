import { NODE_STATUSES } from "../../../shared/node-status.ts";
import { counter, upTo } from "./family.ts";

export const nodeMoves = counter({
  name: "muster_node_moves_total",
  help: "Committed changes of nodes' statuses, by the part of Muster or the person that made them.",
  labels: { from: NODE_STATUSES, to: NODE_STATUSES, owner: upTo(16) },
});
