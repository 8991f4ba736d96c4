import type { MaasSiteWatch } from "../db/schema/index.ts";
import { MaasError, type MaasEvent, type MaasPort } from "../maas/port.ts";
import { EVENTS_PER_REQUEST, type FeedPlace, queryFrom, readFeed, wordOf } from "./plan.ts";

export interface Feed {
  /** The position up to which the hub has read MAAS's events; null until a poll has read the feed of events. */
  readonly place: FeedPlace | null;
  readonly reset: boolean;
  readonly changed: readonly string[];
  readonly events: readonly MaasEvent[];
  /** The error that kept the hub from reading MAAS's events, if MAAS may still answer a request for machines; otherwise null. */
  readonly error: MaasError | null;
}

/**
 * The largest number of requests for events in one poll. If MAX_FEED_REQUESTS requests do not return all new events, the next poll of the site reads
 * the rest.
 */
const MAX_FEED_REQUESTS = 20;

/** The errors of the events feed after which MAAS will not answer a request for machines either. */
const HOPELESS: readonly MaasError["code"][] = ["unauthorized", "unreachable"];

/** If MAAS cannot deliver its events feed, or the feed's format is unknown, the hub reads the machines without the feed (decision M8). */
export async function readFeedOf(
  maas: MaasPort,
  { eventCursor: cursor, eventMark: mark }: Pick<MaasSiteWatch, "eventCursor" | "eventMark">,
  seen: ReadonlyMap<number, string>,
): Promise<Feed> {
  const place = cursor === null ? null : { cursor, mark };
  try {
    return { ...(await (place === null ? begin(maas) : goOn(maas, place, seen))), error: null };
  } catch (error) {
    if (!(error instanceof MaasError) || HOPELESS.includes(error.code)) throw error;
    return { place, reset: false, changed: [], events: [], error };
  }
}

type Read = Omit<Feed, "error">;

async function begin(maas: MaasPort): Promise<Read> {
  const [newest] = await maas.events({ limit: 1 });
  const place = newest === undefined ? { cursor: 0, mark: null } : { cursor: newest.id, mark: wordOf(newest) };
  return { place, reset: false, changed: [], events: [] };
}

async function goOn(maas: MaasPort, place: FeedPlace, seen: ReadonlyMap<number, string>): Promise<Read> {
  const events: MaasEvent[] = [];
  let after = queryFrom(place.cursor);
  for (let request = 0; request < MAX_FEED_REQUESTS; request += 1) {
    const page = await maas.events({ after, limit: EVENTS_PER_REQUEST });
    events.push(...page);
    after = Math.max(after, ...page.map((event) => event.id));
    if (page.length < EVENTS_PER_REQUEST) break;
  }
  // An empty answer to the request for events has two possible reasons: MAAS has had no event yet (the cursor is 0), or MAAS's event ids went back.
  // MAAS's newest event shows whether MAAS's event ids went back.
  const [newest = null] =
    events.length > 0
      ? events.toSorted((a, b) => b.id - a.id)
      : place.cursor === 0
        ? []
        : await maas.events({ limit: 1 });
  const { reset, changed, ...now } = readFeed(place, events, seen, newest);
  return { place: now, reset, changed, events };
}
