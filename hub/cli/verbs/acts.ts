import { NOUNS } from "../nouns/index.ts";
import type { Noun } from "../nouns/noun.ts";

/** The API operation that a verb, such as `cordon`, calls for one kind of object, such as nodes. */
export interface Act {
  readonly noun: Noun;
  readonly operation: string;
}

const node = (operation: string): Act => ({ noun: NOUNS.nodes, operation });
const work = (verb: string): readonly Act[] => [
  { noun: NOUNS.onboardings, operation: `${verb}Onboarding` },
  { noun: NOUNS.decommissions, operation: `${verb}Decommission` },
];

/** The verbs that change objects, each with the API operation for each kind of object. */
export const ACTS = {
  cordon: [node("cordonNode")],
  uncordon: [node("uncordonNode")],
  quarantine: [node("quarantineNode")],
  drain: [node("drainNode")],
  decommission: [node("decommissionNode")],
  release: [{ noun: NOUNS.allocations, operation: "releaseAllocation" }, node("releaseNode")],
  remove: [node("removeNode")],
  retry: work("retry"),
  resume: work("resume"),
  cancel: work("cancel"),
} as const satisfies Record<string, readonly Act[]>;
export type ActName = keyof typeof ACTS;
