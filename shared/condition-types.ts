import type { NetworkOwner } from "./external-attempt.ts";

/** The sources of conditions: the node's agent, the hub itself, cloud-init on the host, or an external provisioning system. */
export const CONDITION_SOURCES = ["agent", "hub", "cloud-init", "external"] as const;
export type ConditionSource = (typeof CONDITION_SOURCES)[number];

/**
 * A stale condition has the status Unknown, which is neither True nor False. In the values of `Bars`, `missing` stands for a condition that no source
 * has reported in the node's present generation (since the host's last installation).
 */
export type Bars = "missing_or_not_true" | "not_true" | "warns" | "never";

/**
 * What a condition means for the node. A barring condition keeps new work off the node, a warning asks a person to look, and information asks for
 * nothing.
 */
export const CONDITION_CLASSES = ["barring", "warning", "information"] as const;
export type ConditionClass = (typeof CONDITION_CLASSES)[number];

const CLASS_OF: Readonly<Record<Bars, ConditionClass>> = {
  missing_or_not_true: "barring",
  not_true: "barring",
  warns: "warning",
  never: "information",
};

export interface ConditionRule {
  readonly sources: readonly ConditionSource[];
  /**
   * After `lifeSeconds` seconds without a report, a condition is stale. If `lifeSeconds` is null, a report of the condition holds until the next
   * report.
   */
  readonly lifeSeconds: number | null;
  readonly bars: Bars;
  /** If the reason of a condition equals `tolerates`, the condition keeps no work off the node, whatever the condition's status is. */
  readonly tolerates?: string;
  /**
   * If `network` is given, the condition keeps work only off hosts whose network this party runs (Muster or an operator's own system); otherwise, off
   * every host.
   */
  readonly network?: NetworkOwner;
  /** If `needsAgent` is true, the condition can keep work off a host only if the host has an agent. */
  readonly needsAgent?: true;
}

/** The facts of a node that decide which of Muster's own rules hold for it. */
export interface HostFacts {
  readonly networkOwnedBy: NetworkOwner;
  readonly runsAgent: boolean;
}
export const appliesTo = ({ network, needsAgent }: ConditionRule, host: HostFacts): boolean =>
  (network === undefined || network === host.networkOwnedBy) && (needsAgent !== true || host.runsAgent);

/**
 * The longest time between two equal readiness signals of an agent. The code in `agent/agent.ts` repeats a readiness signal at the latest after
 * `AGENT_REPEATS_WITHIN_SECONDS` seconds.
 */
export const AGENT_REPEATS_WITHIN_SECONDS = 150;
/**
 * A node's conditions stay valid although up to three readiness signals of its agent in a row are late or lost. A condition becomes stale when four
 * readiness signals of the agent in a row are missing.
 */
const FOUR_REPEATS_SECONDS = 4 * AGENT_REPEATS_WITHIN_SECONDS;

/**
 * The reason of a condition that nobody can observe on the host, because a tool, a file of the kernel or a part of the hardware is missing. A
 * condition with the reason `NotObserved` has the status Unknown and keeps no work off the node.
 */
export const NOT_OBSERVED = "NotObserved";
const BARRING_HEALTH = {
  sources: ["agent"],
  lifeSeconds: FOUR_REPEATS_SECONDS,
  bars: "not_true",
  tolerates: NOT_OBSERVED,
} as const satisfies ConditionRule;
const WARNING_HEALTH = {
  sources: ["agent"],
  lifeSeconds: FOUR_REPEATS_SECONDS,
  bars: "warns",
} as const satisfies ConditionRule;

/**
 * For each of Muster's condition types: its sources, the life of a report, and the value that keeps new work off the node. Hub and agent can write
 * only conditions of Muster's own types. External systems may report conditions with other names, whose rule `ruleOf` returns.
 */
export const CONDITION_TYPES = {
  /** The hub itself writes the condition `agent.connected` when the agent's channel opens, closes or times out. */
  "agent.connected": { sources: ["hub"], lifeSeconds: null, bars: "missing_or_not_true", needsAgent: true },
  /**
   * The condition `agent.identity` is False after the hub has found that two hosts use the node's identity. Only a new enrollment makes the condition
   * `agent.identity` True.
   */
  "agent.identity": { sources: ["hub"], lifeSeconds: null, bars: "not_true" },
  "agent.healthy": {
    sources: ["agent"],
    lifeSeconds: FOUR_REPEATS_SECONDS,
    bars: "missing_or_not_true",
    needsAgent: true,
  },
  /** On a host without an agent, possibly nobody can observe the boot, so such a host does not need the condition `os.booted`. */
  "os.booted": {
    sources: ["agent", "cloud-init", "external"],
    lifeSeconds: null,
    bars: "missing_or_not_true",
    needsAgent: true,
  },
  /**
   * An onboarding waits until the conditions `bootstrap.site` and `bootstrap.muster` are True. New work for a node in service depends on the health
   * of the node's agent, not on the result of the first boot.
   */
  "bootstrap.site": { sources: ["agent"], lifeSeconds: null, bars: "never" },
  "bootstrap.muster": { sources: ["agent"], lifeSeconds: null, bars: "never" },
  /**
   * The condition `network.roce` says whether MAAS gave the host's machine the addresses of all its RoCE rows at the deploy. A profile may allow the
   * host to serve although addresses of its RoCE rows (an interface and its IPv4 address each) are missing.
   */
  "network.roce": {
    sources: ["hub"],
    lifeSeconds: null,
    bars: "not_true",
    tolerates: "MissingButAllowed",
    network: "muster",
  },
  /** The condition `network.addresses` says whether the host has on its interfaces the RoCE addresses of its deploy (decision H3). */
  "network.addresses": {
    sources: ["hub"],
    lifeSeconds: null,
    bars: "not_true",
    tolerates: "MissingButAllowed",
    network: "muster",
  },
  /** If Muster does not run the host's network, the condition `network.ready` is the report of the network's operator about the network. */
  "network.ready": { sources: ["external"], lifeSeconds: null, bars: "not_true", network: "operator" },
  /**
   * The condition `host.ready` is what an external system says about a host without an agent. A host without an agent whose profile has no readiness
   * policy is ready only if `host.ready` is True.
   */
  "host.ready": { sources: ["external"], lifeSeconds: null, bars: "never" },
  /**
   * The condition `adoption.identity` of an adopted node says whether the agent runs on the host of the node's machine in MAAS (decision N8). The
   * condition `adoption.identity` is Unknown until the hub has the enrolled agent's report about its host.
   */
  "adoption.identity": { sources: ["hub"], lifeSeconds: null, bars: "not_true" },
  /** The condition `adoption.gpus` compares the GPUs in the inventory of an adopted host with the node's SKU. */
  "adoption.gpus": { sources: ["hub"], lifeSeconds: null, bars: "never" },
  /**
   * The condition `hardware.sku` compares the host's hardware with the node's SKU (decision H2), and a host with an agent needs the comparison. If
   * the agent cannot list the host's GPUs, the hub does not compare the GPUs with the SKU.
   */
  "hardware.sku": {
    sources: ["hub"],
    lifeSeconds: null,
    bars: "missing_or_not_true",
    tolerates: NOT_OBSERVED,
    needsAgent: true,
  },
  /** The conditions `hardware.*` and `health.*` of the agent are the results of the agent's regular checks of the host (decision H2). */
  "hardware.gpus": BARRING_HEALTH,
  "hardware.nics": WARNING_HEALTH,
  "health.gpu": BARRING_HEALTH,
  "health.gpu_wear": WARNING_HEALTH,
  "health.disks": BARRING_HEALTH,
  "health.disk_wear": WARNING_HEALTH,
  "health.disk_room": WARNING_HEALTH,
  "health.memory": BARRING_HEALTH,
  "health.memory_wear": WARNING_HEALTH,
  "health.kernel": WARNING_HEALTH,
  "health.clock": WARNING_HEALTH,
  /** The condition `agent.noisy` says that the host sends more than its rate limit allows. */
  "agent.noisy": { sources: ["hub"], lifeSeconds: 1_800, bars: "never" },
  "cloud_init.done": { sources: ["cloud-init", "external"], lifeSeconds: null, bars: "never" },
} as const satisfies Record<string, ConditionRule>;

export type ConditionType = keyof typeof CONDITION_TYPES;

/** The conditions about RoCE addresses, of which the profile's `roce_required` decides whether they keep work off. */
export const ROCE_CONDITIONS = ["network.roce", "network.addresses"] as const satisfies readonly ConditionType[];

export type ConditionTypeOf<S extends ConditionSource> = {
  [T in ConditionType]: S extends (typeof CONDITION_TYPES)[T]["sources"][number] ? T : never;
}[ConditionType];

/** A condition whose name an external system chose decides nothing in Muster, and holds until the system reports it again. */
const EXTERNAL_RULE: ConditionRule = { sources: ["external"], lifeSeconds: null, bars: "never" };
/** Conditions whose names begin with `agent.` or `bootstrap.` are Muster's own, so no source may report another condition with such a name. */
const AGENTS_OWN = /^(agent|bootstrap)\./;
/**
 * The rule for conditions that come from the results of a probe, a check that the hub makes of a host as its profile says. The probe in the node's
 * profile decides how long a result is valid, and the condition has an effect only if a readiness policy names it.
 */
const PROBE_RULE: ConditionRule = { sources: ["hub"], lifeSeconds: null, bars: "never" };
const OF_PROBES = /^probe\./;

export const isOfProbe = (type: string): boolean => OF_PROBES.test(type);

const isConditionType = (type: string): type is ConditionType => Object.hasOwn(CONDITION_TYPES, type);

/** Returns the rule for a type of condition, or null if no source may report conditions of this type. */
export function ruleOf(type: string): ConditionRule | null {
  if (isConditionType(type)) return CONDITION_TYPES[type];
  if (isOfProbe(type)) return PROBE_RULE;
  return AGENTS_OWN.test(type) ? null : EXTERNAL_RULE;
}

export const maySay = (source: ConditionSource, type: string): boolean =>
  ruleOf(type)?.sources.includes(source) === true;

export const classOf = (type: string): ConditionClass => CLASS_OF[ruleOf(type)?.bars ?? "never"];
