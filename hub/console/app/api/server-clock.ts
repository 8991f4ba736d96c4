/**
 * The difference between the hub's clock and the browser's. An operator's computer may be minutes wrong, and then "3 minutes ago" would be wrong too.
 * The HTTP header Date has whole seconds only, so the console ignores a difference of less than five seconds.
 */
const BELIEVED_FROM_MS = 5_000;
let aheadMs = 0;

export function noteServerTime(date: string | null, sentAt: number, answeredAt: number): void {
  const server = Date.parse(date ?? "");
  if (Number.isNaN(server)) return;
  const difference = server + 500 - (sentAt + answeredAt) / 2;
  aheadMs = Math.abs(difference) < BELIEVED_FROM_MS ? 0 : difference;
}

/** The present time by the hub's clock, in milliseconds since 1970. */
export const serverNow = (): number => Date.now() + aheadMs;
