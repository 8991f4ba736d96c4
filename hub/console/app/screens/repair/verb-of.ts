import { useHub } from "../../api/session.ts";
import type { VerbButtonProps } from "../../verbs/verb-button.tsx";
import { changedBy, type Repair } from "./repair-questions.ts";
import { firstVerb, type RepairVerb, whyNot } from "./repair-verbs.ts";

type Shared = Pick<VerbButtonProps, "what" | "right" | "first" | "disabledBecause" | "changes">;

/**
 * The properties that the buttons of all verbs of a repair case share: the object, why the verb cannot apply now, and which data is reloaded
 * afterwards.
 */
export function useVerbOf(one: Repair, verb: RepairVerb): Shared {
  const { you } = useHub();
  return {
    what: `the repair of ${one.hostname}`,
    right: verb === "claim" || verb === "report" ? "repair_nodes" : "operate_nodes",
    first: firstVerb(one) === verb,
    disabledBecause: whyNot(verb, one, you),
    changes: changedBy(one),
  };
}
