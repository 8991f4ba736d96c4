import type { SiteId } from "../../shared/ids.ts";
import type { Log } from "../../shared/log.ts";
import { countMoves } from "../db/queries/breaker-counts.ts";
import { databaseNow } from "../db/queries/clock.ts";
import { recordTokenRights, recordTokenUser } from "../db/queries/credential-uses.ts";
import {
  countUnconfirmed,
  countUnmanaged,
  type DriftRow,
  heldAmong,
  lockDriftStates,
  readDriftRows,
  siteSyncInterval,
} from "../db/queries/drift.ts";
import { holdsFence } from "../db/queries/maas-site-watches.ts";
import { retirementsOf } from "../db/queries/machine-releases.ts";
import { forgetOwners, markReconciled, rememberOwners } from "../db/queries/node-machines.ts";
import { type BreakerState, readBreakerState } from "../db/queries/reconciler-breakers.ts";
import type { Db, InTx, Tx } from "../db/tx.ts";
import { MaasError, type MaasPort } from "../maas/port.ts";
import type { MaasUser } from "../maas/same-owner.ts";
import { assertSyncInterval } from "../maas/sync-interval.ts";
import { type ApplyOptions, applyJudgement } from "./apply.ts";
import { BREAKER_WINDOW_SECONDS, breakerTrips, moveLimit } from "./breaker.ts";
import { isAcknowledged } from "./drift-record.ts";
import { type FollowUp, followUp } from "./follow-up.ts";
import { driftStatusOf, type Judged, judge } from "./judged.ts";
import { reportTrip } from "./trip.ts";

export interface ReconcilerServices {
  readonly db: Db;
  readonly inTx: InTx;
  readonly log: Log;
}
/**
 * The result of a finished poll of a site's MAAS region, which read some or all of its machines. `fence` is the fencing number of the site's lease;
 * while it is valid, this hub watches the site.
 */
export interface SitePoll {
  readonly siteId: SiteId;
  readonly fence: number;
  readonly maas: MaasPort;
  /**
   * `all` means that the hub has read every machine of the site from MAAS, so the reconciler judges every node. `some` means that the reconciler
   * judges only nodes whose facts changed.
   */
  readonly read: "some" | "all";
  /** Machines that MAAS no longer lists, although no direct read has confirmed their absence yet. */
  readonly unconfirmed: readonly string[];
}

/** The largest number of nodes that the reconciler changes in one transaction. */
const SLICE = 20;
const JUDGE_ALL_EVERY_MS = 300_000;
/**
 * The largest number of hosts whose hardware sync the reconciler repairs in one pass. If more than `SYNCS_PER_PASS` hosts need a repair of their
 * hardware sync, the next passes of the reconciler repair the others.
 */
const SYNCS_PER_PASS = 20;

/**
 * Compares the nodes of a site with their machines and acts on the differences (lifecycle 6.4). All input of the reconciler is stored in the
 * database, so the reconciler may run at any time. If a hub was killed during a pass of the reconciler, the next pass judges the unfinished nodes. At
 * the latest after the next reading of all machines of a site from MAAS, the reconciler judges all the site's nodes.
 */
export class Reconciler {
  readonly #services: ReconcilerServices;
  /**
   * For each site, the reconciler remembers the MAAS user to whom the site's token belongs. The hub reads the user of a site's token whenever the
   * reconciler judges all nodes, and when a machine's owner has changed.
   */
  readonly #users = new Map<SiteId, MaasUser>();
  readonly #allJudgedAt = new Map<SiteId, number>();
  readonly #settingAssertedAt = new Map<SiteId, number>();

  constructor(services: ReconcilerServices) {
    this.#services = services;
  }

  async reconcile(poll: SitePoll): Promise<void> {
    const { db, log } = this.#services;
    const { siteId } = poll;
    if (poll.read === "all") {
      // If the reconciler's pass after a reading of all machines fails, its next pass must judge all nodes, although the next poll may read only some
      // machines.
      this.#allJudgedAt.delete(siteId);
      const count = await countUnmanaged(db, siteId);
      if (count > 0) log.debug("machines without a node are left alone", { site_id: siteId, count });
    }
    await this.#assertSetting(poll);
    const scope = this.#allAreDue(siteId) ? "all" : "due";
    const rows = await readDriftRows(db, siteId, scope);
    if (rows.length === 0) return;
    const maasUser = await this.#userOf(poll, scope === "all" || rows.some(hasOtherOwner));
    const now = await databaseNow(db);
    const anyRetired = rows.some((row) => row.node.status === "retired");
    const retirements = anyRetired ? await retirementsOf(db, siteId) : null;
    const judged = rows.flatMap((row): Judged[] => {
      const judgement = judge(row, retirements?.get(row.node.id), maasUser);
      return judgement.kind === "judged" ? [{ row, judgement }] : [];
    });
    const breaker = await this.#breaker(poll, judged);
    if (breaker === null) return;
    const heldBack =
      breaker === "open" ? "The site's breaker is open. Check the nodes that it holds back, then reset it." : null;
    const budget = { reseeds: SYNCS_PER_PASS, enablings: SYNCS_PER_PASS };
    for (const some of slices(judged.filter((one) => mayChange(one))))
      await this.#apply(poll, some, { heldBack, now, maasUser, budget });
    await this.#services.inTx(async (tx) => {
      if (!(await holdsFence(tx, siteId, poll.fence))) return;
      if (rows.some((row) => row.state.maasOwner === null || hasOtherOwner(row)))
        await rememberOwners(tx, siteId, maasUser);
      if (anyRetired) await forgetOwners(tx, siteId);
      await markReconciled(
        tx,
        siteId,
        rows.map((row) => row.state),
        scope,
      );
    });
    if (scope === "all") this.#allJudgedAt.set(siteId, performance.now());
  }

  async #userOf({ siteId, maas }: SitePoll, anew: boolean): Promise<MaasUser> {
    const known = anew ? undefined : this.#users.get(siteId);
    if (known !== undefined) return known;
    const { username, isSuperuser } = await maas.whoami();
    const formerNames = await this.#services.inTx(async (tx) => {
      await recordTokenRights(tx, siteId, isSuperuser);
      return recordTokenUser(tx, siteId, username);
    });
    const user = { name: username, formerNames };
    this.#users.set(siteId, user);
    return user;
  }

  /**
   * Sets the interval of hardware sync that a site's MAAS gives to hosts at a deploy (lifecycle 9.1). The hub checks MAAS's interval of hardware sync
   * every five minutes.
   */
  async #assertSetting({ siteId, maas }: SitePoll): Promise<void> {
    const { db, log } = this.#services;
    if (performance.now() - (this.#settingAssertedAt.get(siteId) ?? Number.NEGATIVE_INFINITY) <= JUDGE_ALL_EVERY_MS)
      return;
    this.#settingAssertedAt.set(siteId, performance.now());
    const seconds = await siteSyncInterval(db, siteId);
    if (seconds === null) return;
    try {
      const set = await assertSyncInterval(maas, seconds);
      if (set !== null) log.info("changed the interval of hardware sync in MAAS", { site_id: siteId, seconds, ...set });
    } catch (error) {
      if (!(error instanceof MaasError)) throw error;
      log.warn("the interval of hardware sync in MAAS could not be set; the hub tries again in five minutes", {
        site_id: siteId,
        error,
      });
    }
  }

  /** The reconciler judges all nodes every five minutes, because some rules of drift depend on time alone, which changes no row (lifecycle 6.3). */
  #allAreDue(siteId: SiteId): boolean {
    return performance.now() - (this.#allJudgedAt.get(siteId) ?? Number.NEGATIVE_INFINITY) > JUDGE_ALL_EVERY_MS;
  }

  /**
   * Counts the nodes that the reconciler would quarantine now, and returns the state of the site's breaker. Returns null if another hub has taken the
   * site over.
   */
  async #breaker(poll: SitePoll, judged: readonly Judged[]): Promise<BreakerState | null> {
    const moves = judged.filter(wouldQuarantine).map(({ row }) => row.node);
    return this.#services.inTx(async (tx) => {
      if (!(await holdsFence(tx, poll.siteId, poll.fence))) return null;
      const state = await readBreakerState(tx, poll.siteId, "quarantine");
      if (state !== "closed" || moves.length === 0) return state;
      const besides = moves.map((node) => node.id);
      const { inService, moved } = await countMoves(tx, poll.siteId, "quarantine", {
        windowSeconds: BREAKER_WINDOW_SECONDS,
        besides,
      });
      // A hub needs several polls of MAAS to confirm that machines are gone. `wouldMove` includes the machines whose absence from MAAS is not
      // confirmed yet, so that the breaker sees all machines that vanish together.
      const unconfirmed = await countUnconfirmed(tx, poll.siteId, poll.unconfirmed);
      const counts = { wouldMove: moves.length + unconfirmed, moved, inService };
      if (!breakerTrips(counts)) return state;
      const trip = {
        siteId: poll.siteId,
        kind: "quarantine",
        ...counts,
        moveLimit: moveLimit(counts.inService),
      } as const;
      await reportTrip(tx, trip, moves);
      return "open";
    });
  }

  async #apply(poll: SitePoll, some: readonly Judged[], options: ApplyOptions): Promise<void> {
    const { inTx, log } = this.#services;
    const { followUps, budget } = await inTx(async (tx: Tx) => {
      // The database may repeat the transaction, so the transaction counts down a copy of `budget` (the limits of hardware sync actions), and the
      // copy replaces `budget` after the commit.
      const own = { ...options.budget };
      const asked: FollowUp[] = [];
      if (!(await holdsFence(tx, poll.siteId, poll.fence))) return { followUps: asked, budget: own };
      const nodeIds = some.map(({ row }) => row.node.id);
      const states = await lockDriftStates(tx, nodeIds);
      const held = await heldAmong(tx, nodeIds);
      for (const one of some) {
        const { id } = one.row.node;
        const state = states.get(id);
        // If the node has lost its machine or got another machine since the judgement, the judgement is not valid any more. If an operation holds the
        // node, the operation itself judges the node.
        if (state === undefined || state.maasSystemId !== one.row.state.maasSystemId || held.has(id)) continue;
        asked.push(...(await applyJudgement(tx, one, state, { ...options, budget: own })));
      }
      return { followUps: asked, budget: own };
    });
    Object.assign(options.budget, budget);
    for (const one of followUps) await followUp({ inTx, log, maas: poll.maas }, one);
  }
}

function* slices<T>(all: readonly T[]): Generator<readonly T[]> {
  for (let at = 0; at < all.length; at += SLICE) yield all.slice(at, at + SLICE);
}

const hasOtherOwner = ({ state, machine }: DriftRow): boolean =>
  state.maasOwner !== null && machine !== null && machine.owner !== null && machine.owner !== state.maasOwner;

const mayChange = ({ row: { state, node }, judgement }: Judged): boolean =>
  judgement.findings.length > 0 ||
  judgement.heal ||
  state.driftDetected ||
  state.driftAcknowledged !== null ||
  (state.quarantinedAt !== null && node.status !== "quarantined");

const wouldQuarantine = ({ row, judgement }: Judged): boolean =>
  judgement.findings.some(
    (finding) =>
      finding.action === "quarantine" && !isAcknowledged(finding, driftStatusOf(row), row.state.driftAcknowledged),
  );
