/**
 * Drizzle's query builder returns a Date for `timestamp(..., { withTimezone: true })` columns. A raw `db.execute(sql`...`)` returns PostgreSQL's text
 * ("2026-01-02 03:04:05.123456+00"), and arithmetic on that text is silently NaN. Code must convert every timestamp of a raw SQL statement with
 * `toDate`.
 */
const TIMESTAMPTZ = /^(\d{4,6}-\d\d-\d\d) (\d\d:\d\d:\d\d(?:\.\d+)?)([+-]\d\d)(?::?(\d\d))?(?::\d\d)?$/;

/** `toDate` throws for anything but a finite timestamptz. PostgreSQL's timestamp 'infinity' and dates BC never occur in the database. */
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

/** A JavaScript Date has only milliseconds, so `milliseconds` cuts PostgreSQL's microseconds off. */
function milliseconds(time: string): string {
  const [seconds = "", fraction = ""] = time.split(".");
  return `${seconds}.${fraction.slice(0, 3).padEnd(3, "0")}`;
}
