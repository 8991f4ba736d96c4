import type { Log } from "../../shared/log.ts";
import type { OnCommitted } from "../db/committed.ts";
import { countChanges } from "../metrics/count-changes.ts";
import { lineOf } from "./change-lines.ts";

/** Counts the changes of each committed transaction, and writes one line for each change that an operator cares about. */
export const observeChanges =
  (log: Log): OnCommitted =>
  (changes, asker) => {
    countChanges(changes);
    for (const change of changes) {
      const line = lineOf(change, asker);
      if (line !== null) log[line.level](line.message, line.fields);
    }
  };
