import type { Log } from "../../shared/log.ts";
import type { OnCommitted } from "../db/committed.ts";
import { countChanges } from "../metrics/count-changes.ts";
import type { Traces } from "../traces/export-traces.ts";
import { lineOf } from "./change-lines.ts";

/** Counts and traces the changes of each committed transaction, and writes one line for each change that an operator cares about. */
export const observeChanges =
  (log: Log, traces: Traces): OnCommitted =>
  (changes, asker) => {
    countChanges(changes);
    traces.committed(changes);
    for (const change of changes) {
      const line = lineOf(change, asker);
      if (line !== null) log[line.level](line.message, line.fields);
    }
  };
