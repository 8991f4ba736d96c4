import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eq, sql } from "../../../hub/db/orm.ts";
import { revokeEnrollmentTokens } from "../../../hub/db/queries/enrollment-tokens.ts";
import { domainEvents, enrollmentTokens, nodeEvents, nodes } from "../../../hub/db/schema/index.ts";
import { createNode } from "../../../hub/node/create-node.ts";
import { issueEnrollmentToken, tokenHash } from "../../../hub/node/enrollment-tokens.ts";
import { moveNode } from "../../../hub/node/move-node.ts";
import { NodeId, SiteId } from "../../../shared/ids.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { insertSite } from "../../support/site.ts";

let database: TestDatabase;
const siteId = SiteId.parse(randomUUID());
beforeAll(async () => {
  database = await createTestDatabase();
  await insertSite(database.database.db, { id: siteId });
});
afterAll(() => database.drop());

const inTx: TestDatabase["database"]["inTx"] = (fn, options) => database.database.inTx(fn, options);
const newNode = (mode: "maas" | "manual" = "maas") => ({
  id: NodeId.parse(randomUUID()),
  hostname: `h${randomUUID()}`,
  siteId,
  sku: "g1",
  gpusTotal: 8,
  regionCode: "r1",
  onboardingMode: mode,
  owner: "onboarding" as const,
});
const made = async () => (await inTx((tx) => createNode(tx, newNode()))).node;
const activate = { from: "enrolling", to: "active", owner: "onboarding" } as const;

describe("a node's record", () => {
  it("is created once per id, in the first status of its mode", async () => {
    const input = newNode();
    const first = await inTx((tx) => createNode(tx, input));
    expect(first).toMatchObject({ created: true, node: { status: "enrolling", generation: 0 } });
    const again = await inTx((tx) => createNode(tx, { ...input, hostname: "other" }));
    expect(again).toEqual({ created: false, node: first.node });
    const manual = await inTx((tx) => createNode(tx, newNode("manual")));
    expect(manual.node.status).toBe("bootstrap_issued");
  });

  it("is created once if two transactions create it at the same time", async () => {
    const input = newNode();
    const both = await Promise.all([1, 2].map(() => inTx((tx) => createNode(tx, input))));
    expect(both.map((one) => one.created).sort()).toEqual([false, true]);
  });
});

describe("a transition of a node's status", () => {
  it("writes status, history and event together", async () => {
    const { id } = await made();
    expect(await inTx((tx) => moveNode(tx, id, activate, "up"))).toMatchObject({ moved: true });
    const history = await database.database.db.select().from(nodeEvents).where(eq(nodeEvents.nodeId, id));
    expect(history.at(-1)).toMatchObject({ fromStatus: "enrolling", toStatus: "active", owner: "onboarding" });
    const events = await database.database.db
      .select()
      .from(domainEvents)
      .where(eq(domainEvents.subject, `nodes/${id}`));
    expect(events).toEqual([expect.objectContaining({ type: "node.status.changed" })]);
    expect(events[0]?.data).toMatchObject({ node_id: id, from: "enrolling", to: "active" });
  });

  it("of a node whose status another transaction changed first writes nothing and returns the actual status", async () => {
    const { id } = await made();
    const results = await Promise.all([1, 2, 3].map(() => inTx((tx) => moveNode(tx, id, activate, "up"))));
    expect(results.filter((result) => result.moved)).toHaveLength(1);
    expect(results.filter((result) => !result.moved)).toEqual([
      { moved: false, actual: "active" },
      { moved: false, actual: "active" },
    ]);
    const history = await database.database.db.select().from(nodeEvents).where(eq(nodeEvents.nodeId, id));
    expect(history.filter((event) => event.type === "status_changed")).toHaveLength(1);
  });

  it("of an unknown node returns no status", async () => {
    const id = NodeId.parse(randomUUID());
    expect(await inTx((tx) => moveNode(tx, id, activate, "up"))).toEqual({ moved: false, actual: null });
  });

  it("into draining stores its operation, and the database refuses a draining node without one (decision N3)", async () => {
    const { id } = await made();
    const operationId = randomUUID();
    await inTx(async (tx) => {
      await moveNode(tx, id, activate, "up");
      await moveNode(tx, id, { from: "active", to: "draining", owner: "admin_api", operationId }, "retire");
    });
    const [node] = await database.database.db.select().from(nodes).where(eq(nodes.id, id));
    expect(node).toMatchObject({ status: "draining", operationId });
    const bare = database.database.db.execute(sql`update nodes set operation_id = null where id = ${id}`);
    await expect(bare).rejects.toMatchObject({ cause: { constraint: "nodes_operation_check" } });
    await inTx((tx) => moveNode(tx, id, { from: "draining", to: "retired", owner: "drain" }, "done"));
    const [after] = await database.database.db.select().from(nodes).where(eq(nodes.id, id));
    expect(after).toMatchObject({ status: "retired", operationId: null });
  });
});

describe("an enrollment token", () => {
  const issue = (nodeId: NodeId, generation = 1) =>
    inTx((tx) =>
      issueEnrollmentToken(tx, {
        nodeId,
        workflowId: null,
        generation,
        maasSystemId: null,
        boundMacs: [],
        ttlSeconds: 60,
      }),
    );
  const tokensOf = (nodeId: NodeId) =>
    database.database.db.select().from(enrollmentTokens).where(eq(enrollmentTokens.nodeId, nodeId));

  it("is 32 random bytes, stored only as a hash, and sets the node's generation", async () => {
    const { id } = await made();
    const { token, expiresAt } = await issue(id, 3);
    expect(Buffer.from(token.reveal(), "base64url")).toHaveLength(32);
    expect(`${token}${JSON.stringify({ token })}`).not.toContain(token.reveal());
    const [row] = await tokensOf(id);
    expect(row).toMatchObject({ tokenSha256: tokenHash(token.reveal()), generation: 3, expiresAt });
    expect(JSON.stringify(row)).not.toContain(token.reveal());
    const [node] = await database.database.db.select().from(nodes).where(eq(nodes.id, id));
    expect(node?.generation).toBe(3);
  });

  it("replaces unused tokens of its node, and can be revoked", async () => {
    const { id } = await made();
    await issue(id);
    await issue(id);
    expect((await tokensOf(id)).filter((row) => row.revokedAt === null)).toHaveLength(1);
    await inTx((tx) => revokeEnrollmentTokens(tx, id));
    expect((await tokensOf(id)).filter((row) => row.revokedAt === null)).toHaveLength(0);
  });
});
