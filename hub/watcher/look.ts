import type { SiteId } from "../../shared/ids.ts";
import { knownSystemIds, presentAmong } from "../db/queries/maas-machines.ts";
import { holdsFence, recordLook, waitedOnSystemIds } from "../db/queries/maas-site-watches.ts";
import type { MaasSiteWatch } from "../db/schema/index.ts";
import type { Db, InTx } from "../db/tx.ts";
import type { MaasEvent, MaasMachine, MaasPort } from "../maas/port.ts";
import { keepObserved } from "./observe.ts";
import { breatherMs, EVENTS_PER_REQUEST, queryFrom, readFeed, sweepIsDue, toRead } from "./plan.ts";

export interface LookDependencies {
  readonly db: Db;
  readonly inTx: InTx;
  readonly sweepIntervalMs: number;
}

/** What one hub remembers of a site from look to look; without it a look only does more than it needs. */
export interface LookMemory {
  /** Event ids of the overlap that were acted on. */
  readonly seen: Set<number>;
  /** Before this, by `performance.now()`, machines are not read for being waited on alone. */
  waitedNotBefore: number;
}
export const emptyMemory = (): LookMemory => ({ seen: new Set(), waitedNotBefore: 0 });

const MACHINES_PER_STATEMENT = 200;
/** Requests for events in one look; what is left comes with the next one. */
const MAX_FEED_REQUESTS = 20;
/** Direct reads of vanished machines in one look. */
const MAX_CONFIRMATIONS = 100;

/**
 * One look at a site: its events since the last one, then in one request the machines that changed or are waited on. A sweep, instead, reads
 * all. Throws MaasError; the caller records it. Answers what was read; `lost`: another hub has the site, and nothing was kept.
 */
export async function lookAtSite(
  deps: LookDependencies,
  siteId: SiteId,
  watch: MaasSiteWatch,
  maas: MaasPort,
  memory: LookMemory,
): Promise<"some" | "all" | "lost"> {
  const feed = await readEvents(maas, watch.eventCursor, memory.seen);
  const sweep =
    watch.eventCursor === null ||
    watch.sweepRequestedAt !== null ||
    feed.reset ||
    sweepIsDue(watch.lastSweepAt, new Date(), deps.sweepIntervalMs);
  const began = performance.now();
  const saw = sweep
    ? await sweepAll(deps, siteId, watch.fence, maas)
    : await readSome(deps, siteId, maas, feed.changed, memory);
  const kept = await deps.inTx(async (tx) => {
    const ours = await recordLook(tx, siteId, watch.fence, {
      eventCursor: feed.cursor,
      sweptForMs: sweep && saw.complete ? performance.now() - began : null,
      wakeAnswered: watch.wakeRequestedAt,
      sweepAnswered: sweep ? watch.sweepRequestedAt : null,
    });
    if (!ours) return false;
    for (const some of slices(saw.machines)) await keepObserved(tx, siteId, some);
    await keepObserved(tx, siteId, [], saw.gone);
    return true;
  });
  // Only now: a look that failed, or that another hub's replaced, must act on the same events again.
  if (!kept) return "lost";
  // Ids that MAAS gives out a second time are new events.
  if (feed.reset) memory.seen.clear();
  remember(memory.seen, feed.events, feed.cursor);
  return sweep ? "all" : "some";
}

interface Saw {
  readonly machines: readonly MaasMachine[];
  readonly gone: readonly string[];
  /** False when more machines vanished than one look confirms. */
  readonly complete: boolean;
}

function* slices<T>(all: readonly T[]): Generator<readonly T[]> {
  for (let at = 0; at < all.length; at += MACHINES_PER_STATEMENT) yield all.slice(at, at + MACHINES_PER_STATEMENT);
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
    after = Math.max(after, ...page.map((event) => event.id));
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
  memory: LookMemory,
): Promise<Saw> {
  const waitedOn = performance.now() < memory.waitedNotBefore ? [] : await waitedOnSystemIds(deps.db, siteId);
  const ids = toRead(changed, waitedOn);
  if (ids.length === 0) return { machines: [], gone: [], complete: true };
  const began = performance.now();
  const machines = await maas.readMachines(ids);
  const ended = performance.now();
  if (waitedOn.length > 0) memory.waitedNotBefore = ended + breatherMs(ended - began);
  return { machines, ...(await confirmGone(deps, siteId, maas, missingOf(ids, machines))) };
}

/** All machines, kept in batches so that no transaction grows with the fleet; a hub that lost the site meanwhile keeps nothing more. */
async function sweepAll(deps: LookDependencies, siteId: SiteId, fence: number, maas: MaasPort): Promise<Saw> {
  const known = await knownSystemIds(deps.db, siteId);
  const machines = await maas.listMachines();
  for (const some of slices(machines))
    await deps.inTx(async (tx) => {
      if (await holdsFence(tx, siteId, fence)) await keepObserved(tx, siteId, some);
    });
  return { machines: [], ...(await confirmGone(deps, siteId, maas, missingOf(known, machines))) };
}

function missingOf(asked: readonly string[], answered: readonly MaasMachine[]): string[] {
  const present = new Set(answered.map((machine) => machine.systemId));
  return asked.filter((systemId) => !present.has(systemId));
}

/**
 * Missing from a list proves nothing: it may be a permission that changed. Gone is what a direct read answers with 404 while we are admin
 * (decision M14). What is known to be gone, or was never seen, is not asked for again.
 */
async function confirmGone(
  deps: LookDependencies,
  siteId: SiteId,
  maas: MaasPort,
  missing: readonly string[],
): Promise<Pick<Saw, "gone" | "complete">> {
  if (missing.length === 0) return { gone: [], complete: true };
  const present = await presentAmong(deps.db, siteId, missing);
  if (present.length === 0 || !(await maas.whoami()).isSuperuser) return { gone: [], complete: true };
  const gone: string[] = [];
  for (const systemId of present.slice(0, MAX_CONFIRMATIONS))
    if ((await maas.readMachine(systemId)) === null) gone.push(systemId);
  return { gone, complete: present.length <= MAX_CONFIRMATIONS };
}

function remember(seen: Set<number>, events: readonly MaasEvent[], cursor: number): void {
  for (const event of events) seen.add(event.id);
  const oldest = queryFrom(cursor);
  for (const id of seen) if (id <= oldest) seen.delete(id);
}
