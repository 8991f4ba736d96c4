import type { MaasSiteWatch } from "../db/schema/index.ts";
import { MaasError, type MaasEvent, type MaasPort } from "../maas/port.ts";
import { EVENTS_PER_REQUEST, type FeedPlace, queryFrom, readFeed, wordOf } from "./plan.ts";

/** What the events feed of a site says since the last look. */
export interface Feed {
  /** Null before the first look that could read it. */
  readonly place: FeedPlace | null;
  readonly reset: boolean;
  readonly changed: readonly string[];
  readonly events: readonly MaasEvent[];
  /** Why it could not be read, though MAAS may be asked for its machines all the same; else null. */
  readonly error: MaasError | null;
}

/** Requests for events in one look; what is left comes with the next one. */
const MAX_FEED_REQUESTS = 20;

/** Whoever answers so has nothing to say of machines either. */
const HOPELESS: readonly MaasError["code"][] = ["unauthorized", "unreachable"];

/** A feed that MAAS cannot give, or that has another shape than we know, leaves the machines to be read without it (decision M8). */
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
  // An empty answer may mean "nothing new since a cursor of 0" or a sequence that went back; the newest event tells.
  const [newest = null] =
    events.length > 0
      ? events.toSorted((a, b) => b.id - a.id)
      : place.cursor === 0
        ? []
        : await maas.events({ limit: 1 });
  const { reset, changed, ...now } = readFeed(place, events, seen, newest);
  return { place: now, reset, changed, events };
}
