import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createAllocation } from "../../../hub/allocations/create-allocation.ts";
import { createAllocationBatch } from "../../../hub/allocations/create-batch.ts";
import { openDatabase } from "../../../hub/db/client.ts";
import { eq, sql } from "../../../hub/db/orm.ts";
import { nodes, tasks } from "../../../hub/db/schema/index.ts";
import { AllocationBatchCreate } from "../../../shared/api/allocation-batches.ts";
import { AllocationCreate } from "../../../shared/api/allocations.ts";
import { ApiError } from "../../../shared/api/errors.ts";
import { SiteId } from "../../../shared/ids.ts";
import { addSchedulableNode, SSH_KEY } from "../../support/allocatable-node.ts";
import { type ApiHarness, seedApi, startApi } from "../../support/api-harness.ts";
import { doneAudits } from "../../support/done-audits.ts";
import { quietLog } from "../../support/log.ts";
import { afterAnotherSession } from "../../support/other-session.ts";

const BATCHES = "/api/v1/admin/allocation-batches";

let api: ApiHarness;
let siteId: SiteId;
let skuId: string;
beforeAll(async () => {
  api = await startApi();
  const seeded = await seedApi(api);
  [siteId, skuId] = [SiteId.parse(seeded.siteId), seeded.skuId];
});
afterAll(() => api?.close());
beforeEach(async () => {
  await api.database.database.db.execute(sql`truncate allocations, nodes, node_conditions, tasks cascade`);
});

/** Adds a free node for each name of a rack; null is a node whose rack nobody has set. */
async function addNodes(racks: readonly (string | null)[]): Promise<void> {
  const { inTx, db } = api.database.database;
  for (const [index, rack] of racks.entries()) {
    const id = await inTx((tx) => addSchedulableNode(tx, { siteId, hostname: `n${index}`, sku: skuId }));
    await db.update(nodes).set({ rack, room: "hall" }).where(eq(nodes.id, id));
  }
}
const wanted = (more: object) => ({
  ...{ site_id: siteId, sku_id: skuId, tenant: "acme", login_user: "alice", ssh_keys: [SSH_KEY] },
  ...more,
});
const ask = (more: object) => api.ask("POST", BATCHES, wanted(more));
const hostnames = ({ body }: Awaited<ReturnType<typeof ask>>): string[] =>
  body.items.map((one: { hostname: string }) => one.hostname).sort();
const stored = async () => {
  const { rows } = await api.database.database.db.execute<{ n: number }>(
    sql`select count(*)::int as n from allocations`,
  );
  return rows[0]?.n;
};

describe("a batch of allocations", () => {
  it("gives as many nodes as asked, each with an account of the same keys and a name of its own", async () => {
    await addNodes([null, "a", "b", "c"]);
    const answer = await ask({ count: 3, name_prefix: "worker", description: "train", labels: { job: "7" } });
    expect(answer.status, JSON.stringify(answer.problem)).toBe(202);
    expect(hostnames(answer)).toEqual(["n0", "n1", "n2"]);
    const names = answer.body.items.map((one: { name: string }) => one.name);
    expect(new Set(names).size).toBe(3);
    for (const one of answer.body.items) {
      expect(one).toMatchObject({ status: "granting", tenant: "acme", root: false, labels: { job: "7" } });
      expect(one).toMatchObject({ description: "train", ssh_keys: [SSH_KEY], allow_unhealthy_machine: false });
      expect(one.name).toMatch(/^worker-[a-z2-9]{6}$/);
    }
    expect(await api.database.database.db.select().from(tasks)).toHaveLength(3);
    const audits = await doneAudits(api.database.database.db);
    const of = (wantedAction: string) => audits.filter(({ action }) => action === wantedAction);
    expect(of("createAllocationBatch")).toMatchObject([{ target: `maas-sites/${siteId}`, details: { count: 3 } }]);
    const targets = answer.body.items.map(({ id }: { id: string }) => `allocations/${id}`);
    expect(
      of("createAllocation")
        .map(({ target }) => target)
        .sort(),
    ).toEqual(targets.sort());
    expect(of("createAllocation")[0]).toMatchObject({ details: { ssh_keys: 1, login_user: "alice" } });
    expect(hostnames(await ask({ count: 1 }))).toEqual(["n3"]);
  });

  it("gives none if too few nodes are free, and says how many are", async () => {
    await addNodes(["a", "a", "a"]);
    expect((await ask({ count: 1 })).status).toBe(202);
    const refused = await ask({ count: 3 });
    expect(refused.status).toBe(409);
    expect(refused.problem).toMatchObject({ code: "no_free_node", context: { free: "2", count: "3" } });
    expect(refused.problem.detail).toContain("has 2 free nodes");
    expect(await stored()).toBe(1);
  });

  it("takes the smallest rack that suffices if the request asks for one rack", async () => {
    await addNodes(["a", "a", "a", "b", "b", null, null, null, null]);
    expect(hostnames(await ask({ count: 2, same_rack: true }))).toEqual(["n3", "n4"]);
    expect(hostnames(await ask({ count: 2, same_rack: true }))).toEqual(["n0", "n1"]);
    const refused = await ask({ count: 2, same_rack: true });
    expect(refused.problem).toMatchObject({ code: "no_free_node", context: { free: "5" } });
    expect(refused.problem.detail).toContain("no rack has 2 of them");
    expect(await stored()).toBe(4);
    expect(hostnames(await ask({ count: 5 }))).toHaveLength(5);
  });

  it.each([
    ["no node", { count: 0 }, "/count"],
    ["more nodes than a request may", { count: 65 }, "/count"],
    ["no keys", { count: 1, ssh_keys: [] }, "/ssh_keys"],
    ["a node by its id", { count: 1, node_id: "00000000-0000-4000-8000-000000000000" }, "/node_id"],
    ["an end in the past", { count: 1, ends_at: "2020-01-01T00:00:00Z" }, "/ends_at"],
    ["a name for all", { count: 2, name: "worker" }, "/name"],
  ])("is refused with %s", async (_, more, pointer) => {
    const refused = await ask(more);
    expect(refused.status).toBe(400);
    expect(refused.problem.errors?.[0]?.pointer).toBe(pointer);
  });

  it("is refused for a site or an SKU that does not exist", async () => {
    expect((await ask({ count: 1, sku_id: "unheard-of" })).problem).toMatchObject({ code: "reference_unknown" });
  });
});

describe("two hubs with requests at once", () => {
  it("never give nodes of two racks, if a node moves to another rack while the batch waits for it", async () => {
    await addNodes(["a", "a"]);
    const request = AllocationBatchCreate.parse(wanted({ count: 2, same_rack: true }));
    const refused = await afterAnotherSession(
      api.database.database.pool,
      [["update nodes set rack = 'b' where hostname = $1", ["n1"]]],
      () =>
        api.database.database.inTx((tx) => createAllocationBatch(tx, request, "ann")).catch((error: unknown) => error),
    );
    expect(refused).toMatchObject({ code: "no_free_node" });
    expect(await stored()).toBe(0);
  });

  it("give each node to one tenant, and each batch all nodes or none", async () => {
    const racks = ["a", "a", "a", "b", "b", "b", "b", null];
    const { url } = api.database;
    const hubs = ["a", "b"].map((name) => openDatabase({ url, poolSize: 8, applicationName: name, log: quietLog }));
    try {
      for (let round = 0; round < 8; round += 1) {
        await api.database.database.db.execute(sql`truncate allocations, nodes, node_conditions, tasks cascade`);
        await addNodes(racks);
        const taken = (outcome: Promise<number>) =>
          outcome.catch((error: unknown) => {
            if (error instanceof ApiError && error.code === "no_free_node") return 0;
            throw error;
          });
        const counts = await Promise.all(
          [4, 3, 3, 1, 1].map((count, index) => {
            const hub = hubs[(index + round) % 2];
            if (hub === undefined) throw new Error("no hub");
            return taken(
              hub.inTx(async (tx) => {
                if (count === 1) {
                  await createAllocation(tx, AllocationCreate.parse(wanted({})), "ann");
                  return 1;
                }
                const request = AllocationBatchCreate.parse(wanted({ count, same_rack: index === round % 3 }));
                return (await createAllocationBatch(tx, request, "ann")).length;
              }),
            );
          }),
        );
        for (const [index, count] of counts.entries()) expect([0, [4, 3, 3, 1, 1][index]]).toContain(count);
        const sum = counts.reduce((all, count) => all + count, 0);
        expect(await stored()).toBe(sum);
        // Whoever comes first, at least one batch finds its nodes.
        expect(sum).toBeGreaterThanOrEqual(4);
      }
    } finally {
      for (const hub of hubs) await hub.close();
    }
  });
});
