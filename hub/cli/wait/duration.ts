import { UsageError } from "../errors.ts";

const SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400 };
/** Timers of Node.js take at most 31 bits of milliseconds. */
const MOST_MS = 24 * 86_400_000;

/** Returns a time as `90s`, `30m`, `2h` or `1d` in milliseconds; a number without a unit is in seconds. */
export function durationOf(text: string, flag: string): number {
  const [, number = "", unit = "s"] = /^(\d{1,7})([smhd]?)$/.exec(text) ?? [];
  const ms = Number(number) * (SECONDS[unit || "s"] ?? 1) * 1000;
  if (number === "" || ms === 0 || ms > MOST_MS)
    throw new UsageError(`${flag} takes a time such as 90s, 30m or 2h, at most 24d; not ${text}.`);
  return ms;
}
