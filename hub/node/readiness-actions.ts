import { CONDITION_TYPES, type ConditionType, isOfProbe } from "../../shared/condition-types.ts";
import type { Lack } from "../../shared/readiness-policy.ts";

/** What an operator does about a condition of Muster's own type that keeps work off a node. */
const ABOUT: Readonly<Record<ConditionType, string>> = {
  "agent.connected":
    "Look at the service muster-agent on the host, and whether the host reaches the hub's agent listener",
  "agent.identity": "Find the second host that uses the node's identity, and enroll the right host again",
  "agent.healthy": "Read the condition's message in get-node, mend its cause on the host, and see that the agent runs",
  "os.booted": "Look at the host's console, and let the agent, cloud-init or the provisioning system report the boot",
  "bootstrap.site": "Read the log of the first boot on the host, and reimage the node if its bootstrap did not end",
  "bootstrap.muster": "Read the log of the first boot on the host, and reimage the node if its bootstrap did not end",
  "network.roce":
    "Correct the site's RoCE rows of the host, and reimage the node, or change roce_required of its profile",
  "network.addresses":
    "Check the cables and the network settings of the interfaces that the message names, and reimage the node if a tenant changed the settings",
  "network.ready": "Read the condition's message in get-node, and let the operator of the network mend its cause",
  "host.ready":
    "Let the external system report host.ready, or give the node a profile whose readiness policy names other conditions",
  "adoption.identity": "Enroll the agent on the host that is the node's machine in MAAS",
  "adoption.gpus": "Compare the host's GPUs with the node's SKU",
  "hardware.sku":
    "Repair the host, or correct the node's SKU; the hub compares them again when the agent connects or reports another inventory",
  "hardware.gpus": "Read in the kernel's log why the driver does not show a GPU, and power-cycle or repair the host",
  "hardware.nics": "Check the cables, transceivers and switch ports of the interfaces that the message names",
  "health.gpu": "Do what the message says about the GPU: reset it, power-cycle the host, or have it repaired",
  "health.gpu_wear": "Watch the GPUs that the message names, and check the host's cooling and power",
  "health.disks": "Replace the disk that the message names",
  "health.disk_wear": "Plan the replacement of the disk that the message names",
  "health.disk_room": "Make room on the file system that the message names",
  "health.memory": "Replace the memory module that the message names",
  "health.memory_wear": "Plan the replacement of the memory module that the message names",
  "health.kernel": "Read the kernel's log of the host around the lines in the message",
  "health.clock": "Look at the host's time service (timedatectl)",
  "agent.noisy": "Find out what makes the agent send more than its budget",
  "cloud_init.done": "Read cloud-init's log on the host",
};

/** What an operator does about a condition that an external system reports. */
const FOREIGN: Readonly<Record<Exclude<Lack, "flapping">, string>> = {
  missing: "Let the system that reports it send a readiness signal of the node's present generation",
  older_generation: "Let the system that reports it send a readiness signal of the node's present generation",
  overdue: "Find out why the system that reports it has sent no readiness signal of the node's present generation",
  stale: "Let the system that reports it send a readiness signal again",
  too_old: "Let the system that reports it send a readiness signal again, more often than max_age_seconds",
  wrong_status: "Read the condition's message in get-node, and mend its cause; the system that reports it then says so",
};

const PROBE_BEGINS =
  "See that the node's profile lists the probe, and that the host is in service or, with an external system, that its provisioning is completed";
/** The operator's next actions for a condition that holds the results of the hub's probes. */
const OF_PROBE: typeof FOREIGN = {
  missing: PROBE_BEGINS,
  older_generation: PROBE_BEGINS,
  overdue: PROBE_BEGINS,
  stale:
    "Find out why no hub probes the host: read the hubs' logs, and the metrics muster_probes_total and muster_probe_delay_seconds",
  too_old: "Let max_age_seconds be longer than the probe's interval, and see that the hubs probe",
  wrong_status: "Read the condition's message in get-node, which says what the last probe saw, and mend its cause",
};

const isOwn = (type: string): type is ConditionType => Object.hasOwn(CONDITION_TYPES, type);

const ABOUT_FLAPPING =
  "Find out why it changes so often: read its message in get-node, and look at the host and at the system that reports it. It counts by itself when it has held";

export function nextActionAbout(type: string, kind: Lack): string {
  if (kind === "flapping") return ABOUT_FLAPPING;
  return isOwn(type) ? ABOUT[type] : (isOfProbe(type) ? OF_PROBE : FOREIGN)[kind];
}
