import { PROBE_KINDS } from "../../../shared/probes.ts";
import { counter, histogram } from "./family.ts";

export const probesMade = counter({
  name: "muster_probes_total",
  help: "Probes of hosts by this hub, by kind and outcome: the host passed or failed, it has no address that the hub may connect to (unknown), or the hub itself could not make the probe (not_tried).",
  labels: { kind: PROBE_KINDS, outcome: ["passed", "failed", "unknown", "not_tried"] },
});

export const probeDelaySeconds = histogram({
  name: "muster_probe_delay_seconds",
  help: "Time from the moment when a probe of a host was due to its begin. It grows when the hubs cannot keep up with the probes.",
  labels: {},
  buckets: [0.5, 1, 2, 5, 10, 30, 60, 300],
});
