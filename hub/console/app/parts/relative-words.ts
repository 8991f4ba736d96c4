const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Formats a duration in at most two units, for example `2 h 10 min`. */
export function lengthOf(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < MINUTE) return `${whole} s`;
  if (whole < HOUR) return withRest(whole, MINUTE, "min", 1, "s", whole < 10 * MINUTE);
  if (whole < DAY) return withRest(whole, HOUR, "h", MINUTE, "min", true);
  return withRest(whole, DAY, "d", HOUR, "h", whole < 10 * DAY);
}

function withRest(
  seconds: number,
  unit: number,
  name: string,
  lower: number,
  lowerName: string,
  both: boolean,
): string {
  const count = Math.floor(seconds / unit);
  const rest = Math.floor((seconds % unit) / lower);
  return both && rest > 0 ? `${count} ${name} ${rest} ${lowerName}` : `${count} ${name}`;
}

/** Describes a time relative to `now`: `3 min ago`, `in 2 h`. Both times are in milliseconds. */
export function relativeWords(at: number, now: number): string {
  const seconds = (now - at) / 1000;
  if (Math.abs(seconds) < 10) return "just now";
  const length = coarse(Math.abs(seconds));
  return seconds > 0 ? `${length} ago` : `in ${length}`;
}

/** Formats a duration in one unit, which is enough for a time in a list. */
function coarse(seconds: number): string {
  if (seconds < MINUTE) return `${Math.floor(seconds / 10) * 10} s`;
  if (seconds < HOUR) return `${Math.floor(seconds / MINUTE)} min`;
  if (seconds < 2 * DAY) return `${Math.floor(seconds / HOUR)} h`;
  return `${Math.floor(seconds / DAY)} d`;
}
