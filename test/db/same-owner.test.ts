import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, it } from "vitest";
import { eq, sql } from "../../hub/db/orm.ts";
import { rememberOwners } from "../../hub/db/queries/node-machines.ts";
import { maasMachines, maasSites, nodeMaasState } from "../../hub/db/schema/index.ts";
import { OWNERS } from "../../hub/maas/same-owner.fixture.ts";
import { createNode } from "../../hub/node/create-node.ts";
import { moveNode } from "../../hub/node/move-node.ts";
import { NodeId, SiteId } from "../../shared/ids.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";

/**
 * When the MAAS user is renamed, an SQL statement updates the stored owner of machines. The SQL statement and the TypeScript function that compares
 * owners must agree on which names mean the same owner.
 */
let test: TestDatabase;
const siteId = SiteId.parse(randomUUID());
const nodeId = NodeId.parse(randomUUID());
beforeAll(async () => {
  test = await createTestDatabase();
  await test.database.inTx(async (tx) => {
    await tx.insert(maasSites).values({
      id: siteId,
      name: "dc1",
      regionCode: "r1",
      apiBaseUrl: "http://127.0.0.1:5240/MAAS",
      pxeIface: "ens19",
      pxeVlanVid: 310,
      nodePxeIface: "ens19",
      deployUser: "ubuntu",
      deploySshIface: "ens19",
      upstreamDnsServers: [],
    });
    const about = { hostname: "h", siteId, sku: "s", gpusTotal: 8, regionCode: "r1" } as const;
    await createNode(tx, { id: nodeId, ...about, onboardingMode: "maas", owner: "onboarding" });
    await moveNode(tx, nodeId, { from: "enrolling", to: "active", owner: "onboarding" }, "ready");
    await tx.insert(nodeMaasState).values({ nodeId, siteId, maasSystemId: "m", ipmiIp: "10.0.0.1" });
    const seen = { statusName: "Deployed", statusMessage: "", errorDescription: "", powerState: "on", ipAddresses: [] };
    await tx.insert(maasMachines).values({ siteId, systemId: "m", hostname: "h", status: 6, locked: false, ...seen });
  });
});
afterAll(() => test?.drop());

const FOLLOWED = OWNERS.flatMap(([before, now, user, same]) =>
  before === null || now === null || user === null ? [] : [[before, now, user, same] as const],
);
it.each(FOLLOWED)("follows an owner from %s to %s for the MAAS user %j: %s", async (before, now, user, same) => {
  const { db, inTx } = test.database;
  await db.update(nodeMaasState).set({ maasOwner: before });
  await db.update(maasMachines).set({ owner: now, observedAt: sql`now()` });
  await inTx((tx) => rememberOwners(tx, siteId, user));
  const [row] = await db.select().from(nodeMaasState).where(eq(nodeMaasState.nodeId, nodeId));
  expect(row?.maasOwner === now).toBe(same);
});
