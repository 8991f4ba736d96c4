import { type Findings, fault, fine, type Judged, notObserved, worstOf } from "./judged.ts";

/** The host's clock becomes wrong at more than `WRONG_MS` of difference from the hub's clock, and is right again at `RIGHT_MS` or less. */
const WRONG_MS = 5_000;
const RIGHT_MS = 2_000;

/** Reads the properties that `timedatectl show` prints, one `NAME=VALUE` in each line. */
export function parseTimedatectl(text: string): { readonly synchronized: boolean | null } {
  const value = /^NTPSynchronized=(yes|no)$/m.exec(text)?.[1];
  return { synchronized: value === undefined ? null : value === "yes" };
}

/** The agent compares the host's clock with the hub's clock even if a time service sets the host's clock, because a time server may be wrong. */
export function judgeClock(synchronized: boolean | null, skewMs: number, wasWrong: boolean): Findings {
  const kernel: Judged =
    synchronized === null
      ? notObserved("timedatectl does not say whether a time service keeps the clock.")
      : synchronized
        ? fine("A time service keeps the clock")
        : fault("NotSynchronized", ["No time service keeps the host's clock"]);
  const off = Math.abs(skewMs) > (wasWrong ? RIGHT_MS : WRONG_MS);
  const seconds = (Math.abs(skewMs) / 1000).toFixed(1);
  const hub = off
    ? fault("ClockWrong", [`The clock is ${seconds} s ${skewMs > 0 ? "behind" : "ahead of"} the hub's`])
    : fine("The clock agrees with the hub's");
  return { "health.clock": worstOf([hub, kernel]) ?? kernel };
}
