import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, it } from "vitest";
import { eq, sql } from "../../../hub/db/orm.ts";
import { holdWatch, keepWatches } from "../../../hub/db/queries/maas-site-watches.ts";
import { maasSites, maasSiteWatches, nodes } from "../../../hub/db/schema/index.ts";
import type { Db } from "../../../hub/db/tx.ts";
import { Reconciler } from "../../../hub/reconciler/reconcile.ts";
import type { SiteId } from "../../../shared/ids.ts";
import { type FleetNode, FleetRig } from "../../support/fleet-rig.ts";
import { quietLog } from "../../support/log.ts";
import { until } from "../../support/until.ts";

/** While the reconciler waits for a locked row, the hub must renew its leases and poll all sites (lifecycle 6.3). */
const LEASE_SECONDS = 30;
const us = randomUUID();
const them = randomUUID();
let fleet: FleetRig;
let node: FleetNode;
let otherSite: SiteId;
beforeAll(async () => {
  fleet = await FleetRig.start(1);
  node = await fleet.nodeInService();
  const watcher = fleet.watch();
  await fleet.sweep();
  fleet.status(node.machine, "ready");
  await fleet.becomes(node.nodeId, "quarantined");
  await watcher.close();
  await fleet.db.update(nodes).set({ status: "active" }).where(eq(nodes.id, node.nodeId));
  const [site] = await fleet.db.select().from(maasSites).where(eq(maasSites.id, fleet.siteId));
  if (site === undefined) throw new Error("the rig has no site");
  otherSite = randomUUID() as SiteId;
  await fleet.db.insert(maasSites).values({ ...site, id: otherSite, name: "another" });
});
afterAll(() => fleet?.close());

/** Runs database statements as a hub would, except that a wait for a locked row is an error. */
const withoutWaiting = <T>(run: (db: Db) => Promise<T>): Promise<T> =>
  fleet.inTx(async (tx) => {
    await tx.execute(sql`set local lock_timeout = '2s'`);
    return run(tx);
  });
const keep = (hubId: string) => withoutWaiting((db) => keepWatches(db, hubId, LEASE_SECONDS));
const oursOf = async (hubId: string): Promise<SiteId[]> =>
  (await keep(hubId)).filter((one) => one.ours).map((one) => one.siteId);
const watchOf = async (siteId: SiteId) => {
  const [row] = await fleet.db
    .select({ owner: maasSiteWatches.leaseOwner, until: maasSiteWatches.leaseUntil, fence: maasSiteWatches.fence })
    .from(maasSiteWatches)
    .where(eq(maasSiteWatches.siteId, siteId));
  if (row === undefined) throw new Error(`site ${siteId} has no watch`);
  return row;
};
const lapse = (siteId: SiteId) =>
  withoutWaiting((db) =>
    db
      .update(maasSiteWatches)
      .set({ leaseUntil: sql`now() - interval '1 second'` })
      .where(eq(maasSiteWatches.siteId, siteId)),
  );

/** Starts the reconciler, which waits for the locked row of a node. The node's row stays locked while `during` runs. */
async function whilePassWaits(during: (fence: number) => Promise<void>): Promise<void> {
  const watch = await holdWatch(fleet.db, fleet.siteId, us, LEASE_SECONDS);
  if (watch === null) throw new Error("the site is another hub's");
  const { db, inTx, siteId } = fleet;
  const maas = await fleet.rig.services.maas(siteId);
  const poll = { siteId, fence: watch.fence, maas, read: "some", unconfirmed: [] } as const;
  const passes: Promise<void>[] = [];
  await inTx(async (tx) => {
    await tx.execute(sql`select from nodes where id = ${node.nodeId}::uuid for update`);
    passes.push(new Reconciler({ db, inTx, log: quietLog }).reconcile(poll));
    await until("the pass to wait on the node", async () => {
      const { rows } = await db.execute(sql`
        select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`);
      return rows.length > 0 ? true : undefined;
    });
    await during(watch.fence);
  });
  await Promise.all(passes);
}

it("a pass that waits for a node's row delays no lease and no poll of any site", async () => {
  expect((await oursOf(us)).toSorted()).toEqual([fleet.siteId, otherSite].toSorted());
  await whilePassWaits(async (fence) => {
    await lapse(fleet.siteId);
    expect((await oursOf(us)).toSorted()).toEqual([fleet.siteId, otherSite].toSorted());
    const renewed = await watchOf(fleet.siteId);
    expect(renewed).toMatchObject({ owner: us, fence });
    expect(renewed.until?.getTime()).toBeGreaterThan(Date.now());
    expect(await withoutWaiting((db) => holdWatch(db, otherSite, us, LEASE_SECONDS))).toMatchObject({ leaseOwner: us });
  });
  expect(await fleet.node(node.nodeId)).toMatchObject({ status: "quarantined" });
});

it("an expired lease is taken over only after the pass that holds its fence has ended", async () => {
  await fleet.db.update(nodes).set({ status: "active" }).where(eq(nodes.id, node.nodeId));
  await whilePassWaits(async (fence) => {
    await lapse(fleet.siteId);
    await lapse(otherSite);
    expect(await oursOf(them)).toEqual([otherSite]);
    expect(await withoutWaiting((db) => holdWatch(db, fleet.siteId, them, LEASE_SECONDS))).toBeNull();
    expect(await watchOf(fleet.siteId)).toMatchObject({ owner: us, fence });
  });
  const { fence } = await watchOf(fleet.siteId);
  expect((await oursOf(them)).toSorted()).toEqual([fleet.siteId, otherSite].toSorted());
  expect(await watchOf(fleet.siteId)).toMatchObject({ owner: them, fence: fence + 1 });
});

it("a row that is locked for a moment is skipped, and its hub keeps the site", async () => {
  await fleet.inTx(async (tx) => {
    await tx.execute(sql`select from maas_site_watches where site_id = ${fleet.siteId}::uuid for update`);
    expect((await oursOf(them)).toSorted()).toEqual([fleet.siteId, otherSite].toSorted());
    expect(await withoutWaiting((db) => holdWatch(db, fleet.siteId, them, LEASE_SECONDS))).not.toBeNull();
    expect(await oursOf(us)).toEqual([]);
  });
});
