/**
 * MAAS does not commit events in the order of their ids. Each poll of MAAS's events reads the newest events of earlier polls once more, because MAAS
 * may commit an event with a lower id later (maas 2.15, decision M8).
 */
export const EVENT_OVERLAP = 50;
export const EVENTS_PER_REQUEST = 1000;

export const queryFrom = (cursor: number): number => Math.max(0, cursor - EVENT_OVERLAP);

/**
 * The place up to which the hub has read an events feed: the newest event's id and its content. The field `mark` is the content of the newest MAAS
 * event that the hub has read; null if the hub does not know the content.
 */
export interface FeedPlace {
  readonly cursor: number;
  readonly mark: string | null;
}
export interface FeedPoll extends FeedPlace {
  /**
   * True if MAAS's event ids went back, because somebody restored MAAS or deleted its events. If MAAS's event ids went back, the hub must read all
   * machines of the site.
   */
  readonly reset: boolean;
  readonly changed: readonly string[];
}
interface FeedEvent {
  readonly id: number;
  readonly node: string;
  readonly type: string;
  readonly created: string;
}
/**
 * Returns the content of an event as a text. If an event id has other content than before, it belongs to another event, and the region's event ids
 * went back.
 */
export const wordOf = ({ node, type, created }: FeedEvent): string => `${node} ${created} ${type}`.slice(0, 200);

/**
 * The next request to MAAS for events also returns some events that the hub has processed already; `seen` holds the content of these events by their
 * ids. Each request for MAAS's events includes the event at the cursor, which is the newest event that the hub has processed. If MAAS's answer has no
 * event at or above the cursor, MAAS's event ids went back, for example because somebody restored MAAS's database from a backup. If MAAS's event ids
 * went back and new events have since got ids beyond the cursor, MAAS's answer shows other content than `seen` for the id of a processed event. If
 * the hub knows the content of the event at the cursor (`mark`), MAAS's event ids went back if MAAS's answer lacks this event or shows it with other
 * content.
 */
export function readFeed(
  { cursor, mark }: FeedPlace,
  events: readonly FeedEvent[],
  seen: ReadonlyMap<number, string>,
  newest: FeedEvent | null,
): FeedPoll {
  const newestId = newest?.id ?? 0;
  const retold = events.some((event) => seen.has(event.id) && seen.get(event.id) !== wordOf(event));
  const unmarked = mark !== null && !events.some((event) => event.id === cursor && wordOf(event) === mark);
  const changed = new Set(
    events.filter((event) => seen.get(event.id) !== wordOf(event) && event.node !== "").map((event) => event.node),
  );
  return {
    cursor: newestId,
    mark: newest === null ? null : wordOf(newest),
    reset: newestId < cursor || retold || unmarked,
    changed: [...changed],
  };
}

export const toRead = (changed: readonly string[], waitedOn: readonly string[]): string[] =>
  [...new Set([...waitedOn, ...changed])].sort();

/**
 * Returns the pause after a failed poll of a site. The pause after a failed poll is the poll interval plus a random part of a time window, which
 * doubles with each failure, up to a minute. `random` is a random number in [0, 1) that chooses how much of the time window is added to the poll
 * interval.
 */
export const failurePauseMs = (failures: number, intervalMs: number, random: number): number =>
  Math.round(intervalMs + random * Math.min(60_000, intervalMs * 2 ** Math.min(failures, 10)));

export const sweepIsDue = (sinceSweepMs: number | null, sweepIntervalMs: number): boolean =>
  sinceSweepMs === null || sinceSweepMs >= sweepIntervalMs;

/**
 * The pause after a reading of machines that stages wait on is four times as long as the reading. With pauses four times as long as the readings, the
 * readings of machines that stages wait on keep a MAAS region busy for at most a fifth of the time.
 */
export const breatherMs = (tookMs: number): number => 4 * tookMs;

/**
 * The hub reads a machine that a stage waits on when the wait begins, and when an event names the machine. Every twelfth poll reads all machines that
 * stages wait on, to find changes without an event. Reading the machines of waiting stages with every twelfth poll costs MAAS a twelfth of reading
 * them with each poll.
 */
export const POLLS_PER_WAITED_READ = 12;
