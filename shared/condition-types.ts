/** The sources of conditions: the node's agent, the hub itself, cloud-init on the host, or an external provisioning system. */
export const CONDITION_SOURCES = ["agent", "hub", "cloud-init", "external"] as const;
export type ConditionSource = (typeof CONDITION_SOURCES)[number];

/**
 * Which value of a condition keeps work off its node. A stale condition is Unknown, i.e. neither True nor False; `missing` means that no source has reported it in the
 * node's present generation.
 */
export type Bars = "missing_or_not_true" | "not_true" | "never";

export interface ConditionRule {
  readonly sources: readonly ConditionSource[];
  /** After this many seconds without a report the condition is stale; null: it holds until another report replaces it, e.g. because it records an event. */
  readonly lifeSeconds: number | null;
  readonly bars: Bars;
  /** A reason with which a condition bars nothing, whatever its status. */
  readonly tolerates?: string;
}

/** The longest time between two equal signals of an agent, see `agent/agent.ts`. */
export const AGENT_REPEATS_WITHIN_SECONDS = 150;
/** Three signals may be lost or late: the condition becomes stale when the fourth is missing. */
const FOUR_REPEATS_SECONDS = 4 * AGENT_REPEATS_WITHIN_SECONDS;

/**
 * The condition types that Muster knows: which sources may report each, how long a report holds, and which value bars scheduling. This is the only list: neither
 * hub nor agent can write a type that is not here. External systems may use names of their own in addition (`ruleOf`).
 */
export const CONDITION_TYPES = {
  /** The hub watches the channel itself and writes this condition when the channel opens, closes or times out. */
  "agent.connected": { sources: ["hub"], lifeSeconds: null, bars: "missing_or_not_true" },
  /** False after two hosts were found to use the node's identity; only a new enrollment makes it True. */
  "agent.identity": { sources: ["hub"], lifeSeconds: null, bars: "not_true" },
  "agent.healthy": { sources: ["agent"], lifeSeconds: FOUR_REPEATS_SECONDS, bars: "missing_or_not_true" },
  "os.booted": { sources: ["agent", "cloud-init", "external"], lifeSeconds: null, bars: "missing_or_not_true" },
  /** An onboarding waits for these two conditions; a node in service is judged by its agent's health. */
  "bootstrap.site": { sources: ["agent"], lifeSeconds: null, bars: "never" },
  "bootstrap.muster": { sources: ["agent"], lifeSeconds: null, bars: "never" },
  /** Set by a provisioning's onboarding: whether all RoCE rows of the host are set. A profile may let the host serve without them. */
  "network.roce": { sources: ["hub"], lifeSeconds: null, bars: "not_true", tolerates: "MissingButAllowed" },
  /** The host sends more than its budget. While it does, the hub repeats the condition. */
  "agent.noisy": { sources: ["hub"], lifeSeconds: 1_800, bars: "never" },
  "cloud_init.done": { sources: ["cloud-init", "external"], lifeSeconds: null, bars: "never" },
} as const satisfies Record<string, ConditionRule>;

export type ConditionType = keyof typeof CONDITION_TYPES;
/** The types that this source may report. */
export type ConditionTypeOf<S extends ConditionSource> = {
  [T in ConditionType]: S extends (typeof CONDITION_TYPES)[T]["sources"][number] ? T : never;
}[ConditionType];

/** The rule for a name of an external system: Muster decides nothing by it, and it holds until that system reports another value. */
const EXTERNAL_RULE: ConditionRule = { sources: ["external"], lifeSeconds: null, bars: "never" };
/** Names that only an agent may use, including agents of other versions. */
const AGENTS_OWN = /^(agent|bootstrap)\./;

const isConditionType = (type: string): type is ConditionType => Object.hasOwn(CONDITION_TYPES, type);

/** Null: no source may report this type. */
export function ruleOf(type: string): ConditionRule | null {
  if (isConditionType(type)) return CONDITION_TYPES[type];
  return AGENTS_OWN.test(type) ? null : EXTERNAL_RULE;
}

export const maySay = (source: ConditionSource, type: string): boolean =>
  ruleOf(type)?.sources.includes(source) === true;
