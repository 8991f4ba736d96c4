import type { Verb } from "../workflows/engine/recovery.ts";

export const VERB_SUMMARIES = {
  retry: "Run the failed stage again",
  resume: "Go on from the last safe stage",
  rerun: "Run from the top, adopting what is there",
  restart_clean: "Undo, forget, and begin again",
  cancel: "Stop, and undo where possible",
  adopt: "Accept what is observed and go on",
  mark_manual_intervention: "Freeze until a person resolves it",
} as const satisfies Record<Verb, string>;
