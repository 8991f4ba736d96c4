/** Who may say something of a node: its agent, the hub itself, cloud-init on the host, or an external provisioning system. */
export const CONDITION_SOURCES = ["agent", "hub", "cloud-init", "external"] as const;
export type ConditionSource = (typeof CONDITION_SOURCES)[number];

/**
 * What of a condition keeps work off its node. One that is stale is Unknown, i.e. neither True nor False; `missing` is one that nobody has said in the
 * node's present provisioning.
 */
export type Bars = "missing_or_not_true" | "not_true" | "never";

export interface ConditionRule {
  readonly sources: readonly ConditionSource[];
  /** After so many seconds without a word the condition is stale; null: it holds until another word replaces it, as what happened stays so. */
  readonly lifeSeconds: number | null;
  readonly bars: Bars;
  /** The reason of a word that bars nothing, whatever it says. */
  readonly tolerates?: string;
}

/** The longest that an agent lets pass between two signals that say the same, `agent/agent.ts`. */
export const AGENT_REPEATS_WITHIN_SECONDS = 150;
/** Three signals may be lost or late: it is the fourth silence that counts. */
const FOUR_REPEATS_SECONDS = 4 * AGENT_REPEATS_WITHIN_SECONDS;

/**
 * The condition types that Muster knows, each with who may say it, how long a word on it holds, and what of it bars scheduling. The only list: neither
 * hub nor agent can write a type that is not here. External systems may use names of their own beside these (`ruleOf`).
 */
export const CONDITION_TYPES = {
  /** The hub watches the channel itself and writes when it opens, ends or falls silent. */
  "agent.connected": { sources: ["hub"], lifeSeconds: null, bars: "missing_or_not_true" },
  /** False once two hosts were found to use the node's identity; only an enrollment anew makes it True. */
  "agent.identity": { sources: ["hub"], lifeSeconds: null, bars: "not_true" },
  "agent.healthy": { sources: ["agent"], lifeSeconds: FOUR_REPEATS_SECONDS, bars: "missing_or_not_true" },
  "os.booted": { sources: ["agent", "cloud-init", "external"], lifeSeconds: null, bars: "missing_or_not_true" },
  /** An onboarding waits for these two; a node in service is judged by its agent's health. */
  "bootstrap.site": { sources: ["agent"], lifeSeconds: null, bars: "never" },
  "bootstrap.muster": { sources: ["agent"], lifeSeconds: null, bars: "never" },
  /** Of a provisioning, by its onboarding: whether all RoCE rows of the host are set. A profile may let the host serve without. */
  "network.roce": { sources: ["hub"], lifeSeconds: null, bars: "not_true", tolerates: "MissingButAllowed" },
  /** Its host sends more than a host may; while it does, the hub says so again and again. */
  "agent.noisy": { sources: ["hub"], lifeSeconds: 1_800, bars: "never" },
  "cloud_init.done": { sources: ["cloud-init", "external"], lifeSeconds: null, bars: "never" },
} as const satisfies Record<string, ConditionRule>;

export type ConditionType = keyof typeof CONDITION_TYPES;
/** The types that this source may say. */
export type ConditionTypeOf<S extends ConditionSource> = {
  [T in ConditionType]: S extends (typeof CONDITION_TYPES)[T]["sources"][number] ? T : never;
}[ConditionType];

/** A name of an external system's own: nothing of Muster's is decided by it, and it holds until that system says something else. */
const EXTERNAL_RULE: ConditionRule = { sources: ["external"], lifeSeconds: null, bars: "never" };
/** Names that an agent of another version may use, and nobody else. */
const AGENTS_OWN = /^(agent|bootstrap)\./;

const isConditionType = (type: string): type is ConditionType => Object.hasOwn(CONDITION_TYPES, type);

/** Null: nobody may say this type. */
export function ruleOf(type: string): ConditionRule | null {
  if (isConditionType(type)) return CONDITION_TYPES[type];
  return AGENTS_OWN.test(type) ? null : EXTERNAL_RULE;
}

export const maySay = (source: ConditionSource, type: string): boolean =>
  ruleOf(type)?.sources.includes(source) === true;
