/**
 * Rule for timestamps: drizzle's query builder gives Date for `timestamp(..., { withTimezone: true })` columns, but
 * drizzle tells pg not to parse dates, so a raw `db.execute(sql`...`)` gives PostgreSQL's text ("2026-01-02
 * 03:04:05.123456+00"), on which arithmetic is silently NaN. Every timestamp out of a raw statement goes through here.
 */
const TIMESTAMPTZ = /^(\d{4,6}-\d\d-\d\d) (\d\d:\d\d:\d\d(?:\.\d+)?)([+-]\d\d)(?::?(\d\d))?(?::\d\d)?$/;

/** Throws on anything but a finite timestamptz: 'infinity' and BC dates have no place in this schema. */
export function toDate(value: unknown): Date {
  if (value instanceof Date) return value;
  const match = typeof value === "string" ? TIMESTAMPTZ.exec(value) : null;
  if (match === null)
    throw new TypeError("Expected a timestamptz as PostgreSQL writes it; read the column with toDate");
  const [, day = "", time = "", zoneHours = "", zoneMinutes = "00"] = match;
  return new Date(`${day}T${milliseconds(time)}${zoneHours}:${zoneMinutes}`);
}

export function toDateOrNull(value: unknown): Date | null {
  return value === null ? null : toDate(value);
}

/** Date holds milliseconds; PostgreSQL's microseconds are cut off, as drizzle does for mapped columns. */
function milliseconds(time: string): string {
  const [seconds = "", fraction = ""] = time.split(".");
  return `${seconds}.${fraction.slice(0, 3).padEnd(3, "0")}`;
}
