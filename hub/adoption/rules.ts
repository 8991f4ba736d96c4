import type {
  AdoptionDifference,
  AdoptionDifferenceKind,
  AdoptionRefusal,
  AdoptionRefusalCode,
} from "../../shared/adoption.ts";
import { Hostname } from "../../shared/api/values.ts";
import type { SiteId } from "../../shared/ids.ts";
import { MAAS_STATUS } from "../../shared/maas-status.ts";
import type { MachineDetails } from "../../shared/machine-details.ts";
import type { NodeStatus } from "../../shared/node-status.ts";
import { hasMemory } from "../node/hardware-verdict.ts";
import { provingMacs } from "../node/same-host.ts";
import { hardwareSyncIsHealthy } from "../workflows/provisioning/hardware-sync.ts";

/**
 * The rules of an adoption as pure functions (decision N8): which machine may become a node without a deploy, and how the machine differs from the
 * request.
 */
export interface MachineToAdopt {
  readonly systemId: string;
  readonly hostname: string;
  readonly status: number;
  readonly statusName: string;
  readonly absent: boolean;
  readonly powerState: string;
  readonly owner: string | null;
  readonly locked: boolean;
  readonly interfaceAddresses: readonly { readonly interface: string; readonly address: string }[];
  readonly enableHwSync: boolean | null;
  readonly lastSync: Date | null;
  readonly syncIntervalSeconds: number | null;
  /** What MAAS says of the machine; null if the hub could not read the machine from MAAS, or if an older hub stored it without these details. */
  readonly details: MachineDetails | null;
}
export interface Surroundings {
  /** The node that is bound to the machine already; null if no node is. */
  readonly boundTo: { readonly id: string; readonly status: NodeStatus } | null;
  /** The node of the site, or else a node without a site, that has the machine's hostname and is not bound to the machine. */
  readonly namesake: { readonly id: string; readonly status: NodeStatus } | null;
  /** The unfinished operation on the machine or on a node with its hostname, which prevents the adoption. */
  readonly heldBy: string | null;
  /** True if another machine of the site has the same hostname, as machines of two domains of MAAS may have. */
  readonly hasTwin: boolean;
  /** The node of another site that is bound to a machine with the same system id and BMC. */
  readonly elsewhere: { readonly siteId: SiteId } | null;
  /** The address of the machine's BMC; empty if MAAS has none, and null if MAAS does not list the machine any more. */
  readonly bmc: string | null;
  /** Another machine or node of the site that has the same BMC address. */
  readonly bmcSharedWith: string | null;
  readonly roce: readonly { readonly interface: string; readonly ipv4Cidr: string }[];
}
export interface AdoptionPolicy {
  readonly requireHwSync: boolean;
  readonly syncIntervalSeconds: number;
  /** The system that the profile deploys, as `os/series`. */
  readonly image: string;
  readonly architecture: string;
  readonly appliesRoce: boolean;
  /** The memory of a host of the SKU; undefined if the SKU says nothing about it. */
  readonly memoryGib: number | undefined;
  /** The MAAS user to whom the site's token belongs. */
  readonly maasUser: string;
  readonly accepted: ReadonlySet<AdoptionDifferenceKind>;
  readonly now: Date;
}
export interface AdoptionVerdict {
  readonly outcome: "adopted" | "exists" | "refused";
  readonly differences: readonly AdoptionDifference[];
  readonly refusals: readonly AdoptionRefusal[];
}

const MIB = 2 ** 20;

export function judgeMachine(machine: MachineToAdopt, around: Surroundings, policy: AdoptionPolicy): AdoptionVerdict {
  if (around.boundTo !== null) return { outcome: "exists", differences: [], refusals: [] };
  const obstacles = obstaclesOf(machine, around);
  if (obstacles.length > 0) return { outcome: "refused", differences: [], refusals: obstacles };
  const differences = differencesOf(machine, around, policy);
  const refusals = refusalsFor(machine, differences, policy);
  return { outcome: refusals.length === 0 ? "adopted" : "refused", differences, refusals };
}

/** Returns the refusal to adopt a machine because of the differences that the request does not accept; null if the request accepts all. */
export function refusalsFor(
  machine: MachineToAdopt,
  differences: readonly AdoptionDifference[],
  policy: Pick<AdoptionPolicy, "accepted">,
): AdoptionRefusal[] {
  const unaccepted = differences.filter(({ kind }) => !policy.accepted.has(kind));
  if (unaccepted.length === 0) return [];
  const kinds = [...new Set(unaccepted.map(({ kind }) => kind))].join(", ");
  const message = `${nameOf(machine)} differs from the request (${kinds}). Remove the differences, or name their kinds in accept_differences.`;
  return [{ code: "difference", message }];
}

export const nameOf = ({ systemId, hostname }: Pick<MachineToAdopt, "systemId" | "hostname">): string =>
  `Machine ${systemId} (${hostname})`;

/** Returns the reasons why a machine cannot be adopted even if the request accepts all differences. */
function obstaclesOf(machine: MachineToAdopt, around: Surroundings): AdoptionRefusal[] {
  const found: AdoptionRefusal[] = [];
  const name = nameOf(machine);
  const add = (code: AdoptionRefusalCode, message: string): void =>
    void found.push({ code, message: `${name} ${message}` });
  if (machine.absent || around.bmc === null) add("machine_gone", "is gone from MAAS. Correct the request.");
  else if (machine.status !== MAAS_STATUS.deployed)
    add(
      "not_deployed",
      `is '${machine.statusName}' in MAAS. Only a Deployed machine is adopted; onboard this host instead.`,
    );
  if (machine.details === null)
    add("machine_unreadable", "was not read in full yet. Run the reconciliation of the site, then ask again.");
  else if (provingMacs(machine.details.macs).length === 0)
    add(
      "no_mac_address",
      "has no MAC address in MAAS that only one machine can have, so no agent could prove that it runs there. Commission it in MAAS.",
    );
  if (!Hostname.safeParse(machine.hostname).success)
    add("hostname_invalid", "has a hostname that no node can have. Rename the machine in MAAS.");
  if (around.hasTwin)
    add("hostname_ambiguous", "shares its hostname with another machine. Rename one of them in MAAS.");
  if (around.namesake !== null)
    add(
      "hostname_taken",
      `has the hostname of node ${around.namesake.id}, which is ${around.namesake.status}. Bind a node of manual mode to its machine by bind-node-machine. Remove a node that stands for no host, or rename one of two hosts.`,
    );
  if (around.elsewhere !== null) add("machine_taken", "belongs to a node of another site. Adopt it at one site only.");
  if (around.heldBy !== null)
    add("held", `is held by operation ${around.heldBy}. Wait for the operation, or cancel it.`);
  return found;
}

function differencesOf(machine: MachineToAdopt, around: Surroundings, policy: AdoptionPolicy): AdoptionDifference[] {
  return [
    ...syncDifferences(machine, policy),
    ...roceDifferences(machine, around, policy),
    ...ownDifferences(machine, around, policy),
  ];
}

function syncDifferences(machine: MachineToAdopt, policy: AdoptionPolicy): AdoptionDifference[] {
  if (!policy.requireHwSync) return [];
  if (machine.enableHwSync === false)
    return [
      {
        kind: "hardware_sync_off",
        expected: "on",
        found: "off",
        message:
          "MAAS sets hardware sync up on a host only at a deploy. After the host's agent has enrolled, Muster switches hardware sync on and the agent sets it up.",
      },
    ];
  const found: AdoptionDifference[] = [];
  if (!hardwareSyncIsHealthy(machine, null, policy.now))
    found.push({
      kind: "hardware_sync_stale",
      expected: "a hardware sync within one and a half intervals",
      found: machine.lastSync === null ? "no hardware sync" : `the last one at ${machine.lastSync.toISOString()}`,
      message:
        "The host does not sync its hardware to MAAS. After the host's agent has enrolled, the agent sets hardware sync up again.",
    });
  const interval = machine.syncIntervalSeconds;
  if (interval !== null && interval !== policy.syncIntervalSeconds)
    found.push({
      kind: "hardware_sync_interval",
      expected: `${policy.syncIntervalSeconds} s`,
      found: `${interval} s`,
      message:
        "MAAS keeps the interval of the deploy. After the host's agent has enrolled, the agent sets the host's timer.",
    });
  return found;
}

function roceDifferences(
  machine: MachineToAdopt,
  { roce }: Surroundings,
  policy: AdoptionPolicy,
): AdoptionDifference[] {
  if (!policy.appliesRoce) return [];
  const found: AdoptionDifference[] = [];
  for (const name of new Set(roce.map((row) => row.interface))) {
    const wanted = roce.filter((row) => row.interface === name).map(({ ipv4Cidr }) => ipv4Cidr.split("/")[0] ?? "");
    const has = machine.interfaceAddresses.filter((one) => one.interface === name).map(({ address }) => address);
    const missing = wanted.filter((address) => !has.includes(address));
    const others = has.filter((address) => !wanted.includes(address));
    const [expected, actual] = [`${name} ${wanted.join(", ")}`, `${name} ${has.join(", ") || "without an address"}`];
    if (missing.length > 0)
      found.push({
        kind: "roce_missing",
        expected,
        found: actual,
        message: `Interface ${name} lacks ${missing.join(", ")} of the host's RoCE rows in MAAS. Muster sets RoCE addresses only before a deploy, so the next reimage sets them.`,
      });
    if (others.length > 0)
      found.push({
        kind: "roce_other",
        expected,
        found: actual,
        message: `Interface ${name} has ${others.join(", ")} in MAAS, which no RoCE row of the host names. Correct the rows or MAAS.`,
      });
  }
  return found;
}

function ownDifferences(machine: MachineToAdopt, around: Surroundings, policy: AdoptionPolicy): AdoptionDifference[] {
  const found: AdoptionDifference[] = [];
  const add = (kind: AdoptionDifferenceKind, expected: string, actual: string, message: string): void =>
    void found.push({ kind, expected, found: actual, message });
  const { details } = machine;
  if (machine.owner !== policy.maasUser)
    add(
      "other_owner",
      policy.maasUser,
      machine.owner ?? "nobody",
      "Muster releases and deploys only machines of its own MAAS user, so this node cannot be reimaged until its owner has released the machine.",
    );
  if (details !== null) found.push(...detailDifferences(details, policy));
  if (machine.locked)
    add(
      "locked",
      "unlocked",
      "locked",
      "Muster does not release or deploy a locked machine. Unlock it in MAAS before a reimage.",
    );
  if (machine.powerState === "off")
    add("powered_off", "on", "off", "The host is off in MAAS, so nobody can install its agent.");
  if (around.bmc === "")
    add(
      "bmc_unknown",
      "a BMC address",
      "none",
      "MAAS has no BMC address of the machine, so Muster cannot tell two hosts apart by it.",
    );
  if (around.bmcSharedWith !== null)
    add(
      "bmc_shared",
      "a BMC of its own",
      around.bmcSharedWith,
      "Another host has the same BMC address, so a power command could reach the wrong host.",
    );
  return found;
}

/** The differences between a machine and the request that only the machine's full details from MAAS show. */
function detailDifferences(details: MachineDetails, policy: AdoptionPolicy): AdoptionDifference[] {
  const found: AdoptionDifference[] = [];
  const add = (kind: AdoptionDifferenceKind, expected: string, actual: string, message: string): void =>
    void found.push({ kind, expected, found: actual, message });
  const image = `${details.osystem}/${details.distro_series}`;
  if (image !== policy.image)
    add("other_image", policy.image, image, "The profile deploys another system; the next reimage installs it.");
  if (details.architecture !== policy.architecture)
    add("other_architecture", policy.architecture, details.architecture, "The profile is for another architecture.");
  const { memory_mib: mib } = details;
  if (policy.memoryGib !== undefined && mib !== null && mib > 0 && !hasMemory(mib * MIB, policy.memoryGib))
    add(
      "other_memory",
      `${policy.memoryGib} GiB`,
      `${Math.round(mib / 1024)} GiB`,
      "The host has less memory than its SKU says, so the node takes no tenant until the SKU or the host is another one.",
    );
  if (details.ephemeral)
    add(
      "ephemeral",
      "a system on disk",
      "a system in memory",
      "A restart loses the system of the host, and its agent.",
    );
  if (details.hardware_uuid === null)
    add(
      "hardware_uuid_unknown",
      "a hardware UUID",
      "none",
      "Only the MAC addresses can prove which host the agent runs on. Commission the machine in MAAS to learn its UUID.",
    );
  return found;
}
