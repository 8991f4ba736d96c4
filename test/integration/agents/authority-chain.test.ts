import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { sql } from "../../../hub/db/orm.ts";
import { openSession, recordTrust } from "../../../hub/db/queries/agent-sessions.ts";
import { countTrust } from "../../../hub/db/queries/authority-statements.ts";
import { authorityStatements } from "../../../hub/db/schema/index.ts";
import { authority as section } from "../../../hub/diagnostics/sections/authority.ts";
import { HubAuthority } from "../../../hub/gateway/hub-authority.ts";
import { openTaskSigner } from "../../../hub/gateway/task-signer.ts";
import { type NodeId, TaskId } from "../../../shared/ids.ts";
import { MOST_STATEMENTS, TrustChain, type TrustKind } from "../../../shared/trust.ts";
import { newNodeId } from "../../fakes/hub/orders.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { MemorySecrets } from "../../support/memory-secrets.ts";

let database: TestDatabase;
let secrets: MemorySecrets;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());
beforeEach(async () => {
  secrets = new MemorySecrets();
  await database.database.db.execute(sql`truncate ${authorityStatements}`);
});

const open = (more: { readonly secrets?: MemorySecrets } = {}) =>
  HubAuthority.open({ db: database.database.db, secrets, settleMs: 0, ...more });
async function state(hub: HubAuthority, kind: TrustKind) {
  const next = kind === "announce" ? await hub.prepareNext() : await hub.haveNext();
  const statement = await database.database.inTx((tx) => hub.state(tx, kind, next));
  await hub.refresh();
  return statement;
}
/** Copies the secret store without the paths that end with the text `without`, as a restore from an older backup would. */
function restored(without: string): MemorySecrets {
  const store = new MemorySecrets();
  for (const [path, data] of secrets.entries) if (!path.endsWith(without)) store.entries.set(path, data);
  return store;
}

describe("the chain of the hub's keys", () => {
  it.each(["certificate-authority", "task-signing-key", "certificate-authority-2", "task-signing-key-2"])(
    "keeps a hub from creating %s anew when the secret store is an older backup",
    async (path) => {
      const hub = await open();
      await state(hub, "announce");
      await state(hub, "finish");
      const older = restored(path);
      const before = [...older.entries.keys()];
      await expect(open({ secrets: older })).rejects.toMatchObject({
        code: "secret_corrupt",
        message: expect.stringContaining("newer backup"),
      });
      expect([...older.entries.keys()]).toEqual(before);
    },
  );

  it("accepts no other keys in place of those that it names", async () => {
    const hub = await open();
    await state(hub, "announce");
    const [others, strange] = [restored("-2"), restored("-2")];
    for (const store of [others, strange]) {
      // The secret store's keys of generation 2 differ from the announced keys, as if a hub had made them after a restore.
      await openTaskSigner(store, 2);
      store.entries.set(
        "kv/muster/certificate-authority-2",
        secrets.entries.get("kv/muster/certificate-authority-2") ?? {},
      );
    }
    // The hub refuses to finish a rotation of its keys if its secret store lacks the announced keys.
    const waiting = await open({ secrets: others });
    await expect(waiting.haveNext()).rejects.toMatchObject({ code: "secret_corrupt" });
    expect((await waiting.lookAtNext()).keys?.generation).toBe(2);
    await state(hub, "finish");
    await expect(open({ secrets: strange })).rejects.toMatchObject({
      code: "secret_corrupt",
      message: expect.stringContaining("differ from those that were announced to hosts"),
    });
    await expect(waiting.refresh()).rejects.toMatchObject({ code: "secret_corrupt" });
    expect(waiting.generation).toBe(1);
  });

  it("refuses a statement that was prepared from an older state of the chain", async () => {
    const [one, other] = [await open(), await open()];
    await state(one, "announce");
    const announced = await one.haveNext();
    await state(other, "abort");
    const again = await state(other, "announce");
    const finish = () => database.database.inTx((tx) => one.state(tx, "finish", announced));
    await expect(finish()).rejects.toMatchObject({ code: "conflict" });
    await one.refresh();
    expect(one.trust.next?.generation).toBe(again.generation);
    await expect(finish()).rejects.toMatchObject({ code: "conflict" });
    expect(await state(one, "finish")).toMatchObject({ generation: 3, sequence: 4 });
  });

  it("has room for the end of each rotation that it allows to begin", async () => {
    const signer = await openTaskSigner(secrets);
    const { ca } = await open();
    const key = { ca_pem: ca.caPem, order_key: signer.publicKey };
    const full = MOST_STATEMENTS - 2;
    const rows = Array.from({ length: full }, (_, index) => {
      const kind = index % 2 === 0 ? ("announce" as const) : ("abort" as const);
      const generation = 2 + Math.floor(index / 2);
      const {
        ca_pem: caPem,
        order_key: orderKey,
        ...same
      } = signer.signStatement({ sequence: index + 1, kind, generation, ...key });
      return { ...same, caPem, orderKey };
    });
    await database.database.db.insert(authorityStatements).values(rows);
    const hub = await open();
    await state(hub, "announce");
    expect(await state(hub, "finish")).toMatchObject({ sequence: MOST_STATEMENTS });
    expect(TrustChain.safeParse(hub.chain).success).toBe(true);
    await expect(state(hub, "announce")).rejects.toMatchObject({ code: "conflict" });
    await database.database.db.execute(sql`delete from ${authorityStatements} where sequence = ${MOST_STATEMENTS}`);
    expect(await state(await open(), "abort")).toMatchObject({ sequence: MOST_STATEMENTS });
  });

  it("counts a host as informed only if it reported the chain in its current generation", async () => {
    const { db, inTx } = database.database;
    const hub = await open();
    await state(hub, "announce");
    const session = (nodeId: NodeId, generation: number) => ({
      ...{ nodeId, generation, hubId: nodeId, channel: "websocket" as const, bootId: "b", agentVersion: "1" },
      ...{ protocolVersion: 1, heartbeatTtlMs: 1_000, remoteAddress: null },
    });
    const host = async (status: string) => {
      const nodeId = newNodeId();
      await db.execute(sql`insert into nodes (id, hostname, sku, gpus_total, region_code, status, onboarding_mode, generation)
        values (${nodeId}, ${nodeId}, 's', 8, 'r', ${status}, 'manual', 1)`);
      await db.execute(sql`insert into node_certificates (serial, node_id, generation, public_key_sha256, not_before, not_after)
        select gen_random_uuid()::text, ${nodeId}, g, 'f', now(), now() + interval '1 day' from generate_series(1, 2) g`);
      const { epoch } = await inTx((tx) => openSession(tx, session(nodeId, 1)));
      await recordTrust(db, nodeId, epoch, 1);
      return nodeId;
    };
    const [, , anew] = [await host("active"), await host("deleted"), await host("active")];
    const counts = async () => {
      const shown = section;
      if (shown.of !== "database") throw new Error("the section is not read from the database");
      const { data } = await inTx((tx) => shown.read(tx));
      const { hosts, informed } = await countTrust(db, 1, 10);
      return { hosts, informed, shown: (data as { hosts: number }[])[0]?.hosts };
    };
    expect(await counts()).toEqual({ hosts: 2, informed: 2, shown: 2 });
    await db.execute(sql`update nodes set generation = 2 where id = ${anew}`);
    expect(await counts()).toEqual({ hosts: 1, informed: 1, shown: 1 });
    await inTx((tx) => openSession(tx, session(anew, 2)));
    expect(await counts()).toEqual({ hosts: 2, informed: 1, shown: 1 });
    await inTx((tx) => openSession(tx, session(anew, 2)));
    expect(await counts()).toEqual({ hosts: 2, informed: 1, shown: 1 });
  });

  it("lets no hub sign that has not read it for 15 s, counted from when the hub asked", async () => {
    const order = {
      task_id: TaskId.parse(randomUUID()),
      node_id: newNodeId(),
      epoch: 1,
      type: "node.heartbeat_check",
      input: { nonce: "n" },
      input_sha256: "0".repeat(64),
      lease_seconds: 30,
      not_after: new Date().toISOString(),
    };
    const holder = await database.database.pool.connect();
    vi.useFakeTimers({ toFake: ["performance"] });
    try {
      const hub = await open();
      const sign = () => hub.signer.sign(order);
      vi.advanceTimersByTime(15_000);
      expect(sign).not.toThrow();
      vi.advanceTimersByTime(1);
      expect(sign).toThrow("could not read for a while which order key is valid");
      await hub.refresh();
      expect(sign).not.toThrow();
      await holder.query("begin");
      await holder.query("lock table authority_statements in access exclusive mode");
      const refreshing = hub.refresh();
      vi.advanceTimersByTime(15_001);
      await holder.query("commit");
      await refreshing;
      expect(sign).toThrow("could not read for a while which order key is valid");
    } finally {
      vi.useRealTimers();
      holder.release();
    }
  });
});
