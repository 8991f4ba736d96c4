/** Allocation requests that arrive at two hubs at once get different nodes, and fail only if no node is free. */
import { randomUUID } from "node:crypto";
import fc from "fast-check";
import { afterAll, beforeAll, expect, it } from "vitest";
import { createAllocation } from "../../hub/allocations/create-allocation.ts";
import { type Database, openDatabase } from "../../hub/db/client.ts";
import { sql } from "../../hub/db/orm.ts";
import { cordonForOperator } from "../../hub/node/cordon.ts";
import { AllocationCreate } from "../../shared/api/allocations.ts";
import { ApiError } from "../../shared/api/errors.ts";
import { type NodeId, SiteId } from "../../shared/ids.ts";
import { addSchedulableNode, SSH_KEY } from "../support/allocatable-node.ts";
import { type ApiHarness, seedApi, startApi } from "../support/api-harness.ts";
import { quietLog } from "../support/log.ts";

let api: ApiHarness;
let hubs: readonly Database[];
let siteId: SiteId;
let sku: string;
beforeAll(async () => {
  api = await startApi();
  const seeded = await seedApi(api);
  [siteId, sku] = [SiteId.parse(seeded.siteId), seeded.skuId];
  const { url } = api.database;
  hubs = ["a", "b"].map((name) => openDatabase({ url, poolSize: 6, applicationName: `hub-${name}`, log: quietLog }));
});
afterAll(async () => {
  for (const hub of hubs ?? []) await hub.close();
  await api?.close();
});

/** The state of a node: free, or the reason why an allocation may not take the node. */
const Node = fc.constantFrom("free", "free", "cordoned", "unready");
/**
 * An allocation request at one of the two hubs, for any free node or by name for the first node. If `givesUp` is true, the hub rolls the allocation
 * back just before the commit, as after a break of the client's connection.
 */
const Request = fc.record({
  hub: fc.constantFrom(0, 1),
  byName: fc.boolean(),
  givesUp: fc.integer({ min: 0, max: 5 }).map((n) => n === 0),
});

class GaveUp extends Error {}

async function fleetOf(kinds: readonly string[]): Promise<NodeId[]> {
  const { inTx, db } = api.database.database;
  await db.execute(sql`truncate allocations, nodes, node_conditions, tasks cascade`);
  return inTx(async (tx) => {
    const ids: NodeId[] = [];
    for (const [index, kind] of kinds.entries()) {
      const id = await addSchedulableNode(tx, { siteId, hostname: `n${index}`, sku });
      if (kind === "cordoned") await cordonForOperator(tx, id, "ann", "checked");
      if (kind === "unready")
        await tx.execute(sql`delete from node_conditions where node_id = ${id} and type = 'os.booted'`);
      ids.push(id);
    }
    return ids;
  });
}

it("gives each node to one request, and refuses a request only if all nodes are taken or not in service", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(Node, { minLength: 1, maxLength: 5 }),
      fc.array(Request, { minLength: 1, maxLength: 8 }),
      async (kinds, requests) => {
        const ids = await fleetOf(kinds);
        const usable = kinds.filter((kind) => kind === "free").length;
        const ask = async ({ hub, byName, givesUp }: (typeof requests)[number]): Promise<string> => {
          const where = byName ? { node_id: ids[0] } : { site_id: siteId, sku_id: sku };
          const body = AllocationCreate.parse({
            ...where,
            tenant: randomUUID(),
            login_user: "alice",
            ssh_keys: [SSH_KEY],
          });
          try {
            return await (hubs[hub] ?? api.database.database).inTx(async (tx) => {
              const { nodeId } = await createAllocation(tx, body, "test");
              if (givesUp) throw new GaveUp();
              return nodeId;
            });
          } catch (error) {
            if (error instanceof GaveUp) return "gave up";
            if (error instanceof ApiError) return error.code;
            throw error;
          }
        };
        const answers = await Promise.all(requests.map(ask));
        const given = answers.filter((answer) => ids.includes(answer as NodeId));
        expect(new Set(given).size, "no node is given twice").toBe(given.length);
        expect(given.every((id) => kinds[ids.indexOf(id as NodeId)] === "free")).toBe(true);
        if (answers.includes("no_free_node"))
          expect(given.length, "a request is refused only if every usable node is given").toBe(usable);
        const left = await api.database.database.db.execute<{ n: number }>(
          sql`select count(*)::int as n from allocations a join tasks t on t.id = a.grant_task_id and t.node_id = a.node_id`,
        );
        expect(left.rows[0]?.n, "each allocation has its task, and nothing is left of the others").toBe(given.length);
      },
    ),
    { numRuns: 40 },
  );
});
