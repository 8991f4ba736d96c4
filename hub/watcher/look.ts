import type { SiteId } from "../../shared/ids.ts";
import { knownSystemIds } from "../db/queries/maas-machines.ts";
import { recordLook, waitedOnSystemIds } from "../db/queries/maas-site-watches.ts";
import type { MaasSiteWatch } from "../db/schema/index.ts";
import type { Db, InTx } from "../db/tx.ts";
import type { MaasEvent, MaasMachine, MaasPort } from "../maas/port.ts";
import { keepObserved } from "./observe.ts";
import { EVENTS_PER_REQUEST, queryFrom, readFeed, sweepIsDue, toRead } from "./plan.ts";

export interface LookDependencies {
  readonly db: Db;
  readonly inTx: InTx;
  readonly sweepIntervalMs: number;
}

const MACHINES_PER_COMMIT = 200;
/** Requests for events in one look; what is left comes with the next one. */
const MAX_FEED_REQUESTS = 20;

/**
 * One look at a site: its events since the last one, then in one request the machines that changed or are waited on. `seen` carries the
 * ids of the overlap from look to look. Throws MaasError; the caller records it.
 */
export async function lookAtSite(
  deps: LookDependencies,
  siteId: SiteId,
  watch: MaasSiteWatch,
  maas: MaasPort,
  seen: Set<number>,
): Promise<void> {
  const first = watch.eventCursor === null;
  const feed = await readEvents(maas, watch.eventCursor, seen);
  const sweep =
    first ||
    feed.reset ||
    watch.wakeRequestedAt !== null ||
    sweepIsDue(watch.lastSweepAt, new Date(), deps.sweepIntervalMs);
  const seenNow = sweep ? await sweepAll(deps, siteId, maas) : await readSome(deps, siteId, maas, feed.changed);
  await deps.inTx(async (tx) => {
    if (
      !(await recordLook(tx, siteId, watch.fence, {
        eventCursor: feed.cursor,
        swept: sweep,
        wakeAnswered: watch.wakeRequestedAt,
      }))
    )
      return;
    await keepObserved(tx, siteId, seenNow.machines, seenNow.gone);
  });
  // Only now: a look that failed must act on the same events again.
  remember(seen, feed.events, feed.cursor);
}

interface Seen {
  readonly machines: readonly MaasMachine[];
  readonly gone: readonly string[];
}

async function readEvents(
  maas: MaasPort,
  cursor: number | null,
  seen: ReadonlySet<number>,
): Promise<{ cursor: number; reset: boolean; changed: readonly string[]; events: readonly MaasEvent[] }> {
  if (cursor === null) {
    const [newest] = await maas.events({ limit: 1 });
    return { cursor: newest?.id ?? 0, reset: false, changed: [], events: [] };
  }
  const events: MaasEvent[] = [];
  let after = queryFrom(cursor);
  for (let request = 0; request < MAX_FEED_REQUESTS; request += 1) {
    const page = await maas.events({ after, limit: EVENTS_PER_REQUEST });
    events.push(...page);
    after = page[0]?.id ?? after;
    if (page.length < EVENTS_PER_REQUEST) break;
  }
  // An empty answer may mean "nothing new since a cursor of 0" or a sequence that went back; the newest event tells.
  const newest =
    events.length > 0 || cursor === 0
      ? Math.max(0, ...events.map((event) => event.id))
      : ((await maas.events({ limit: 1 }))[0]?.id ?? 0);
  return { ...readFeed(cursor, events, seen, newest), events };
}

async function readSome(
  deps: LookDependencies,
  siteId: SiteId,
  maas: MaasPort,
  changed: readonly string[],
): Promise<Seen> {
  const ids = toRead(changed, await waitedOnSystemIds(deps.db, siteId));
  if (ids.length === 0) return { machines: [], gone: [] };
  const machines = await maas.readMachines(ids);
  return { machines, gone: await confirmGone(maas, ids, machines) };
}

/** All machines, kept in batches so that no transaction grows with the fleet. */
async function sweepAll(deps: LookDependencies, siteId: SiteId, maas: MaasPort): Promise<Seen> {
  const known = await knownSystemIds(deps.db, siteId);
  const machines = await maas.listMachines();
  for (let at = 0; at < machines.length; at += MACHINES_PER_COMMIT) {
    await deps.inTx((tx) => keepObserved(tx, siteId, machines.slice(at, at + MACHINES_PER_COMMIT)));
  }
  return { machines: [], gone: await confirmGone(maas, known, machines) };
}

/** Missing from a list proves nothing: it may be a permission that changed. Gone is what a direct read answers with 404 while we are admin (decision M14). */
async function confirmGone(
  maas: MaasPort,
  asked: readonly string[],
  answered: readonly MaasMachine[],
): Promise<string[]> {
  const present = new Set(answered.map((machine) => machine.systemId));
  const missing = asked.filter((systemId) => !present.has(systemId));
  if (missing.length === 0) return [];
  const gone: string[] = [];
  for (const systemId of missing) if ((await maas.readMachine(systemId)) === null) gone.push(systemId);
  return gone.length > 0 && (await maas.whoami()).isSuperuser ? gone : [];
}

function remember(seen: Set<number>, events: readonly MaasEvent[], cursor: number): void {
  for (const event of events) seen.add(event.id);
  const oldest = queryFrom(cursor);
  for (const id of seen) if (id <= oldest) seen.delete(id);
}
