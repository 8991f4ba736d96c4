import type { SiteId } from "../../shared/ids.ts";
import type { Log } from "../../shared/log.ts";
import { databaseClock } from "../db/queries/clock.ts";
import { type HeldWatch, recordPoll, waitedOnSystemIds } from "../db/queries/maas-site-watches.ts";
import { machinesToReread } from "../db/queries/machines-to-reread.ts";
import type { Db, InTx } from "../db/tx.ts";
import type { MaasPort, MachineList } from "../maas/port.ts";
import { type Confirmed, confirmGone } from "./confirm.ts";
import { type Feed, readFeedOf } from "./feed.ts";
import { keepObserved, type Seen } from "./observe.ts";
import { breatherMs, POLLS_PER_WAITED_READ, queryFrom, sweepIsDue, toRead, wordOf } from "./plan.ts";
import { RepeatedReadings } from "./repeated-readings.ts";
import { ROLL_CALL_MS, RollCall } from "./roll-call.ts";
import { missingFrom, Sweep, type SweptList } from "./sweep.ts";

export interface PollDependencies {
  readonly db: Db;
  readonly inTx: InTx;
  readonly log: Log;
  readonly sweepIntervalMs: number;
  /** The longest time in milliseconds for which a poll waits for the end of a reading of all machines that it has begun. */
  readonly sweepPatienceMs?: number;
  /** The time in milliseconds between MAAS's last list of machines or machine ids and the hub's request for the next list of ids. */
  readonly rollCallMs?: number;
  /**
   * The hub calls `onSweepEnded` at the end of a reading of all machines (a sweep) that took longer than the poll that began it. The first poll after
   * the end of a reading of all machines stores its result.
   */
  readonly onSweepEnded?: () => void;
}

/** A hub's memory of a site only saves work: without it, a poll reads more than necessary. */
export interface PollMemory {
  /** The content of processed MAAS events that the next poll reads a second time, by event id. */
  readonly seen: Map<number, string>;
  /** The value of `performance.now()` before which the hub does not read a machine only because a stage waits on it. */
  waitedNotBefore: number;
  /** The machines that stages waited on when the hub last queried the database for them. */
  waited: ReadonlySet<string>;
  pollsSinceWaited: number;
  /** The reading of all machines of the site that still runs, or whose missing machines are not confirmed as gone yet; null if there is none. */
  sweep: Sweep | null;
  /** After a failed reading of all machines of the site, no new one begins before the time `sweepNotBefore`. */
  sweepNotBefore: number;
  sweepFailed: boolean;
  /** The machines with unreadable data that the log already names. */
  readonly unreadable: Set<string>;
  /** The machines that the hub reads repeatedly, because their last reading may be outdated although no event names them. */
  readonly rereads: RepeatedReadings;
  /** The list of all machine ids that the hub has requested from MAAS and not used yet. */
  rollCall: RollCall | null;
  calledAt: number;
  /** The machines that are missing from MAAS's last list of machine ids and that the hub must still read directly. */
  unanswered: readonly string[];
}
export const emptyMemory = (): PollMemory => ({
  seen: new Map(),
  rereads: new RepeatedReadings(),
  rollCall: null,
  calledAt: Number.NEGATIVE_INFINITY,
  unanswered: [],
  waitedNotBefore: 0,
  waited: new Set(),
  pollsSinceWaited: 0,
  sweep: null,
  sweepNotBefore: 0,
  sweepFailed: false,
  unreadable: new Set(),
});

const SWEEP_PATIENCE_MS = 2_000;

/** The error of a poll whose site another hub has taken over. A hub that lost a site must not store its readings of the site. */
class SiteLost extends Error {}

/**
 * Polls a site once: it reads the new events, and with one more request the machines that changed or that a stage newly waits on. If a reading of all
 * machines of the site (a sweep) is due, the poll begins it. A long reading of all machines continues in parallel with the polls, and the first poll
 * after its end stores its result. `pollSite` throws MaasError if the poll could read nothing. If the poll could read anything, `pollSite` returns
 * what the poll could read and what it could not. The result `lost` means that another hub watches the site now, and that the poll stored nothing.
 */
export async function pollSite(
  deps: PollDependencies,
  siteId: SiteId,
  watch: HeldWatch,
  maas: MaasPort,
  memory: PollMemory,
): Promise<PollResult | "lost"> {
  const feed = await readFeedOf(maas, watch, memory.seen);
  // A reading of all machines that still runs may have begun before MAAS's event ids went back, so the hub drops its result.
  if (feed.reset) memory.sweep = null;
  const begins = memory.sweep === null && performance.now() >= memory.sweepNotBefore && isOwed(deps, watch, feed);
  if (begins) {
    const options = { requestedAt: watch.sweepRequestedAt, patienceMs: deps.sweepPatienceMs ?? SWEEP_PATIENCE_MS };
    memory.sweep = await Sweep.begin(deps.db, siteId, maas, options);
    if (memory.sweep.end === null && deps.onSweepEnded !== undefined) memory.sweep.whenEnded(deps.onSweepEnded);
  }
  const end = memory.sweep?.end ?? null;
  const list = end !== null && "list" in end ? end.list : null;
  const some = begins && list !== null ? NOTHING_READ : await readSome(deps, { siteId, maas, watch }, feed, memory);
  const sweptMissing = list?.missing ?? memory.sweep?.toConfirm ?? [];
  const unanswered = await callTheRoll(deps, siteId, maas, memory);
  const inTurn = [...sweptMissing, ...unanswered];
  const confirmed = await confirmGone(deps.db, siteId, maas, { now: some.missing, inTurn });
  const failed = end !== null && "error" in end;
  const kept = await keep(deps, siteId, watch, { feed, list, some, confirmed, failed, memory });
  if (!kept) return "lost";
  remember(memory, feed, some, list);
  memory.unanswered = confirmed.left;
  tellUnreadable(deps.log, siteId, memory.unreadable, list ?? some.list, list !== null);
  settleSweep(memory, list, confirmed, failed);
  return {
    read: list === null ? "some" : "all",
    unconfirmed: confirmed.left,
    error: failed ? end.error : feed.error,
  };
}

export interface PollResult {
  /** `all` means that the poll read every machine of the site. */
  readonly read: "some" | "all";
  /** Machines that MAAS no longer lists and that no poll has read directly yet. */
  readonly unconfirmed: readonly string[];
  /**
   * The error of the events feed or of the list of machines; null if the poll could read all that it requested. The caller of `pollSite` stores the
   * poll's error.
   */
  readonly error: unknown;
}

interface ReadSome {
  readonly asked: readonly string[];
  readonly list: MachineList;
  readonly missing: readonly string[];
  readonly readSince: string | null;
  /**
   * The machines that stages wait on; null if the poll did not query the database for them. `all` means that the poll read each machine from MAAS
   * that a stage waits on.
   */
  readonly waited: { readonly ids: readonly string[]; readonly all: boolean } | null;
}
const NOTHING_READ: ReadSome = {
  asked: [],
  list: { machines: [], unreadable: [] },
  missing: [],
  readSince: null,
  waited: null,
};

const isOwed = ({ sweepIntervalMs }: PollDependencies, watch: HeldWatch, feed: Feed): boolean =>
  feed.reset ||
  (watch.eventCursor === null && feed.error === null) ||
  watch.sweepRequestedAt !== null ||
  sweepIsDue(watch.sinceSweepMs, sweepIntervalMs);

async function readSome(
  { db }: PollDependencies,
  { siteId, maas, watch }: { siteId: SiteId; maas: MaasPort; watch: HeldWatch },
  feed: Feed,
  memory: PollMemory,
): Promise<ReadSome> {
  // If the events feed failed, only a reading of a machine shows its changes, so the poll reads the machines that stages wait on.
  const waited = await askWaited(db, siteId, watch.wakeRequestedAt !== null || feed.error !== null, memory);
  const fresh = waited === null ? [] : waited.ids.filter((id) => waited.all || !memory.waited.has(id));
  if (waited !== null) {
    memory.rereads.record(await machinesToReread(db, siteId));
    fresh.push(...memory.rereads.due(performance.now()));
  }
  const ids = toRead(feed.changed, fresh);
  if (ids.length === 0) return { ...NOTHING_READ, waited };
  const readSince = await databaseClock(db);
  const began = performance.now();
  const list = await maas.readMachines(ids);
  const ended = performance.now();
  if (fresh.length > 0) memory.waitedNotBefore = ended + breatherMs(ended - began);
  return { asked: ids, list, missing: missingFrom(ids, list), readSince, waited };
}

async function askWaited(db: Db, siteId: SiteId, each: boolean, memory: PollMemory): Promise<ReadSome["waited"]> {
  if (performance.now() < memory.waitedNotBefore) return null;
  const ids = await waitedOnSystemIds(db, siteId);
  return { ids, all: each || memory.pollsSinceWaited + 1 >= POLLS_PER_WAITED_READ };
}

/** `callTheRoll` requests the list of ids from MAAS if the hub has read no list of machines for a while. */
async function callTheRoll(
  { db, log, rollCallMs = ROLL_CALL_MS }: PollDependencies,
  siteId: SiteId,
  maas: MaasPort,
  memory: PollMemory,
): Promise<readonly string[]> {
  if (memory.rollCall === null && memory.sweep === null && performance.now() - memory.calledAt >= rollCallMs) {
    memory.calledAt = performance.now();
    memory.rollCall = await RollCall.begin(db, siteId, maas);
  }
  const end = memory.rollCall?.end ?? null;
  if (end === null) return memory.unanswered;
  memory.rollCall = null;
  // The poll stores the machines that MAAS's list lacks in the hub's memory before the next request, so that the hub does not forget them if the poll
  // fails later.
  if ("missing" in end) memory.unanswered = end.missing;
  else
    log.warn("MAAS did not list its machines; the next sweep finds deleted machines", {
      site_id: siteId,
      error: end.error,
    });
  return memory.unanswered;
}

interface PollFindings {
  readonly feed: Feed;
  readonly list: SweptList | null;
  readonly some: ReadSome;
  readonly confirmed: Confirmed;
  readonly failed: boolean;
  readonly memory: PollMemory;
}

/** The last step of the transaction that stores a poll checks that this hub still watches the site. */
async function keep(
  deps: PollDependencies,
  siteId: SiteId,
  watch: HeldWatch,
  findings: PollFindings,
): Promise<boolean> {
  const { feed, list, some, confirmed, memory } = findings;
  const sweep = memory.sweep;
  const kept = list !== null || (sweep !== null && sweep.toConfirm !== null);
  const swept = sweep !== null && kept && confirmed.left.length === 0 ? sweep : null;
  const readings = onceEach([
    { machines: confirmed.present, readSince: null },
    { machines: some.list.machines, readSince: some.readSince },
    ...(list === null ? [] : [list]),
  ]);
  try {
    await deps.inTx(async (tx) => {
      await keepObserved(tx, siteId, readings, confirmed.gone);
      const ours = await recordPoll(tx, siteId, watch.fence, {
        place: feed.place,
        hasRead: feed.error === null || list !== null || some.readSince !== null,
        startsAnew: feed.reset,
        sweptForMs: swept?.tookMs ?? null,
        wakeAnswered: watch.wakeRequestedAt,
        sweepAnswered: swept?.requestedAt ?? null,
        unreadable:
          list === null
            ? null
            : {
                machines: list.unreadable.length,
                systemIds: list.unreadable.flatMap(({ systemId }) => systemId ?? []),
              },
        clearsError: feed.error === null && (list !== null || !(findings.failed || memory.sweepFailed)),
      });
      if (!ours) throw new SiteLost();
    });
    return true;
  } catch (error) {
    if (error instanceof SiteLost) return false;
    throw error;
  }
}

/** If several readings contain the same machine, the poll keeps only the first reading of the machine, which is the newest one. */
function onceEach(readings: readonly Seen[]): Seen[] {
  const taken = new Set<string>();
  return readings.map(({ machines, readSince }) => {
    const first = machines.filter(({ systemId }) => !taken.has(systemId));
    for (const { systemId } of first) taken.add(systemId);
    return { machines: first, readSince };
  });
}

/**
 * Updates what the hub remembers of the site's MAAS events in `memory`, after a poll was stored. After a failed poll, or if another hub took the site
 * over, `memory` does not change, so the next poll processes the same events.
 */
function remember(memory: PollMemory, feed: Feed, some: ReadSome, swept: SweptList | null): void {
  const { seen } = memory;
  // After MAAS's event ids went back, MAAS uses ids a second time for new events, so the hub forgets the old events.
  if (feed.reset) seen.clear();
  const news = feed.events.filter((event) => seen.get(event.id) !== wordOf(event)).toSorted((a, b) => a.id - b.id);
  const machines = [...some.list.machines, ...(swept?.machines ?? [])];
  memory.rereads.polled(news, { asked: some.asked, machines }, performance.now());
  if (swept !== null) memory.calledAt = performance.now();
  for (const event of feed.events) seen.set(event.id, wordOf(event));
  const oldest = queryFrom(feed.place?.cursor ?? 0);
  for (const id of seen.keys()) if (id <= oldest) seen.delete(id);
  memory.pollsSinceWaited = some.waited?.all === true ? 0 : memory.pollsSinceWaited + 1;
  if (some.waited !== null) memory.waited = new Set(some.waited.ids);
}

function settleSweep(memory: PollMemory, list: SweptList | null, confirmed: Confirmed, failed: boolean): void {
  const { sweep } = memory;
  if (sweep === null) return;
  if (failed) {
    memory.sweep = null;
    memory.sweepFailed = true;
    memory.sweepNotBefore = performance.now() + breatherMs(sweep.tookMs);
  } else if (list !== null || sweep.toConfirm !== null) {
    memory.sweepFailed = false;
    if (confirmed.left.length === 0) memory.sweep = null;
    else sweep.toConfirm = confirmed.left;
  }
}

/** The largest number of machines that one log line names. */
const MACHINES_NAMED = 20;

/**
 * Logs each machine whose data from MAAS the hub cannot parse, once for each machine. A machine whose id the hub cannot read either is logged after
 * each reading of all machines of the site, and only then.
 */
function tellUnreadable(
  log: Log,
  siteId: SiteId,
  known: Set<string>,
  { machines, unreadable }: Pick<MachineList, "machines" | "unreadable">,
  swept: boolean,
): void {
  for (const { systemId } of machines) known.delete(systemId);
  const news = unreadable.filter(({ systemId }) => (systemId === null ? swept : !known.has(systemId)));
  for (const { systemId } of unreadable) if (systemId !== null) known.add(systemId);
  if (news.length === 0) return;
  const named = news.slice(0, MACHINES_NAMED).map(({ systemId, problem }) => ({ system_id: systemId, problem }));
  log.warn("machines of a site cannot be read, because MAAS describes them in a form that this hub does not know", {
    site_id: siteId,
    count: news.length,
    machines: named,
  });
}
