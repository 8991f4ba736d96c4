import type { Verb } from "../workflows/engine/recovery.ts";

export const VERB_SUMMARIES = {
  retry: "Run the failed stage again",
  resume: "Continue from the last safe stage",
  rerun: "Run again from the first stage, adopting what exists",
  restart_clean: "Undo the effects, delete the recorded facts, and start again",
  cancel: "Stop, and undo what can be undone",
  adopt: "Accept the observed state and continue",
  mark_manual_intervention: "Freeze the operation until a person resolves it",
} as const satisfies Record<Verb, string>;
