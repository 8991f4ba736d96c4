import type { Json } from "../../shared/json.ts";
import { createLog, isAtLeast, type Log, type LogLevel, type LogSink } from "../../shared/log.ts";

const MOST_LINES = 1_000;
const MOST_BYTES = 1_048_576;
/** The largest length of one kept log line, so that a single line cannot displace all other lines. */
const LONGEST_LINE = 16_384;
const LONGEST_MESSAGE = 1_000;

type Line = { readonly [key: string]: Json };

/** The last lines of this process's log, in memory, which show an operator how a problem came about. */
export class LogRing {
  readonly #lines: string[] = [];
  #bytes = 0;
  #dropped = 0;

  keep(line: string): void {
    const kept = Buffer.byteLength(line) <= LONGEST_LINE ? line : shortened(line);
    this.#lines.push(kept);
    this.#bytes += Buffer.byteLength(kept);
    while (this.#lines.length > MOST_LINES || this.#bytes > MOST_BYTES) {
      this.#bytes -= Buffer.byteLength(this.#lines.shift() ?? "");
      this.#dropped += 1;
    }
  }

  /** Returns the kept log lines, oldest first. `dropped` is the number of older log lines that the log's ring in memory has removed. */
  read(): { readonly lines: readonly Line[]; readonly dropped: number } {
    return { lines: this.#lines.map((line) => JSON.parse(line) as Line), dropped: this.#dropped };
  }
}

function shortened(line: string): string {
  const { time, level, message } = JSON.parse(line) as Line;
  return JSON.stringify({ time, level, message: String(message).slice(0, LONGEST_MESSAGE), left_out: line.length });
}

export interface KeptLog {
  readonly log: Log;
  readonly ring: LogRing;
}

/**
 * Creates a log whose lines of `level` and above go to `sink`. The log's ring in memory keeps every line of the level info and above, even if the
 * log's `level` is higher.
 */
export function createKeptLog(level: LogLevel, sink: LogSink): KeptLog {
  const ring = new LogRing();
  const log = createLog(isAtLeast("info", level) ? level : "info", (line, at) => {
    if (isAtLeast(at, level)) sink(line, at);
    if (isAtLeast(at, "info")) ring.keep(line);
  });
  return { log, ring };
}
