import { counter, upTo } from "./family.ts";

export const collectErrors = counter({
  name: "muster_metrics_collect_errors_total",
  help: "Failed reads of a group of gauges from the database; the gauges of the group are missing from the answer until a read succeeds.",
  labels: { group: upTo(24) },
});
