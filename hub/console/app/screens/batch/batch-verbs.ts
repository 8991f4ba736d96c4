import type { Batch } from "./batch-questions.ts";

export type BatchVerb = "pause" | "resume" | "recover" | "cancel";

export const VERBS: Readonly<
  Record<BatchVerb, { readonly title: string; readonly effect: string; readonly final?: true }>
> = {
  recover: {
    title: "Recover",
    effect: "The hub gives each failed host of the batch the verb that the hub recommends for it.",
  },
  pause: {
    title: "Pause",
    effect: "The hub begins no further host until a person resumes the batch. What is under way goes on.",
  },
  resume: { title: "Resume", effect: "The hub begins the waiting hosts again." },
  cancel: {
    title: "Cancel",
    effect: "The hub stops what is under way of the batch, and undoes what it did where that is possible.",
    final: true,
  },
};

/** Returns why a verb such as pause or cancel would have no effect on the batch now; null if a person can use it. */
export function whyNot(verb: BatchVerb, batch: Pick<Batch, "failed" | "paused" | "counts" | "done">): string | null {
  if (verb === "recover") return batch.failed > 0 ? null : "No host of the batch has failed.";
  if (verb === "resume") return batch.paused === null ? "The batch is not paused." : null;
  if (verb === "cancel") return batch.done ? "Nothing of the batch is under way." : null;
  if (batch.paused !== null) return "The batch is paused already.";
  return (batch.counts.pending ?? 0) > 0 ? null : "No host of the batch waits for its turn.";
}
