import type { OperationVerb as Verb } from "../../verbs/operation-verb.ts";
import type { Operation, Timeline } from "./operation-questions.ts";

/** The title and effect of each verb of an operation, in display order. */
export const VERBS: Readonly<Record<Verb, { readonly title: string; readonly effect: string; readonly final?: true }>> =
  {
    retry: { title: "Retry", effect: "The hub runs the failed stage again, with new attempts and a new deadline." },
    resume: { title: "Resume", effect: "The hub goes on from the last safe stage." },
    rerun: { title: "Rerun", effect: "The hub runs all stages from the first one, and adopts what is already there." },
    adopt: { title: "Adopt", effect: "The hub accepts what it observes now as the result of the stage, and goes on." },
    restart_clean: {
      title: "Restart clean",
      effect: "The hub undoes what the operation has done, forgets it, and begins again with the first stage.",
      final: true,
    },
    cancel: {
      title: "Cancel",
      effect: "The hub stops the operation, and undoes what it has done where that is possible.",
    },
    mark_manual_intervention: {
      title: "Freeze",
      effect: "The hub stops the operation until a person gives it another verb.",
    },
  };
export const verbNames = Object.keys(VERBS) as readonly Verb[];

type Standing = Pick<Operation, "status" | "pending_verb" | "started_at">;
const ENDED: ReadonlySet<string> = new Set(["completed", "cancelled", "reconciled"]);
const STOPS: ReadonlySet<Verb> = new Set(["cancel", "restart_clean", "mark_manual_intervention"]);
export const isEnded = (status: string): boolean => ENDED.has(status);
export const isFailed = (status: string): boolean => status.startsWith("failed");

/** Returns why a verb such as retry would have no effect on the operation now; null if a person can use it. The hub decides about each request again. */
export function whyNot(verb: Verb, { status, pending_verb: pending, started_at: begun }: Standing): string | null {
  if (isEnded(status)) return `The operation is ${status}, and ended operations take no verb.`;
  if (pending !== null && !STOPS.has(verb))
    return `${VERBS[pending].title} takes effect as soon as the present run of the stage has ended.`;
  if (pending === verb) return `${VERBS[verb].title} is already requested.`;
  if (isFailed(status)) return null;
  if (status === "compensating")
    return verb === "cancel" || verb === "mark_manual_intervention"
      ? null
      : "The hub is undoing what the operation did. Wait until it has ended.";
  if (verb === "cancel" || verb === "mark_manual_intervention") return null;
  if (verb === "restart_clean")
    return begun === null ? "The operation has not begun, so there is nothing to undo." : null;
  if (verb === "retry" && status === "running") return null;
  return status === "pending"
    ? "The operation waits for its turn and goes on by itself."
    : "The operation is under way. The verb continues an operation that has failed.";
}

/** Returns why a person cannot let a decommission continue without the agent's answer; null if they can. */
export function whyNotForced(kind: Timeline["kind"], status: string): string | null {
  if (isEnded(status)) return `The operation is ${status}, and ended operations take no verb.`;
  if (status === "compensating") return "The hub is undoing what the operation did. Wait until it has ended.";
  if (kind === "release" || kind === "reinstall")
    return `A ${kind} waits for no agent of an old system. Resume or cancel it.`;
  if (kind === "soft_reset" || kind === "storage_cleanup")
    return "Only the agent can clean its host. Bring the agent back and resume, or cancel and drain the node.";
  return null;
}

/** Returns the verbs of an operation with the recommended one first, which the screen highlights. */
export const inOrder = (recommended: Verb | null): readonly Verb[] =>
  recommended === null ? verbNames : [recommended, ...verbNames.filter((verb) => verb !== recommended)];
