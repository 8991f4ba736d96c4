import { type Findings, fault, fine, type Judged, notObserved, worstOf } from "./judged.ts";

/** Above the first difference from the hub's clock the host's clock is wrong; below the second it no longer is. */
const WRONG_MS = 5_000;
const RIGHT_MS = 2_000;

/** Reads the properties that `timedatectl show` prints, one `NAME=VALUE` in each line. */
export function parseTimedatectl(text: string): { readonly synchronized: boolean | null } {
  const value = /^NTPSynchronized=(yes|no)$/m.exec(text)?.[1];
  return { synchronized: value === undefined ? null : value === "yes" };
}

/** The agent compares its clock with the hub's as well, because a time server may be wrong too. */
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
