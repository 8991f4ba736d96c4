/**
 * Each database transaction that writes events holds an advisory lock. Readers of events conclude from the transactions' advisory locks which events
 * are final (decision P5).
 */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { EVENT_LOCK_SPACE } from "../../hub/db/advisory-locks.ts";
import { sql } from "../../hub/db/orm.ts";
import { recordDomainEvent } from "../../hub/db/queries/domain-events.ts";
import { lastSettled, listDomainEvents } from "../../hub/db/queries/domain-events-list.ts";
import { EVERYWHERE } from "../../hub/db/queries/reach.ts";
import { inSavepoint, type Tx } from "../../hub/db/tx.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";

describe("a writer of events", () => {
  let test: TestDatabase;
  beforeAll(async () => {
    test = await createTestDatabase();
  });
  afterAll(() => test?.drop());

  const write = (tx: Tx, subject: string) =>
    recordDomainEvent(tx, {
      type: "node.status.changed",
      subject,
      data: { node_id: "n", hostname: "h", from: "offline", to: "active", owner: "heartbeat" },
    });
  const writeAlone = (subject: string) => test.database.inTx((tx) => write(tx, subject));
  const subjectsAfter = async (after: bigint) =>
    (await listDomainEvents(test.database.db, { after, limit: 1000, reach: EVERYWHERE })).map((event) => event.subject);
  const marksOf = async (tx: Tx): Promise<number> => {
    const { rows } = await tx.execute<{ marks: number }>(sql`
      select count(*)::int as marks from pg_locks
      where locktype = 'advisory' and pid = pg_backend_pid() and (classid::int8 >> 16) = ${EVENT_LOCK_SPACE}::int8`);
    return rows[0]?.marks ?? -1;
  };

  it("takes one lock for all its events, and readers wait for everything after its first event", async () => {
    const before = await lastSettled(test.database.db);
    await test.database.inTx(async (tx) => {
      for (let n = 0; n < 40; n += 1) {
        await write(tx, `nodes/long-${n}`);
        await writeAlone(`nodes/short-${n}`);
      }
      expect(await marksOf(tx)).toBe(1);
      expect(await subjectsAfter(before), "what comes after the open transaction's first event").toEqual([]);
    });
    expect(await subjectsAfter(before)).toHaveLength(80);
  });

  it("takes a new lock in its connection's next transaction", async () => {
    for (let n = 0; n < 3; n += 1)
      await test.database.inTx(async (tx) => {
        expect(await marksOf(tx)).toBe(0);
        await write(tx, "nodes/again");
        expect(await marksOf(tx)).toBe(1);
      });
  });

  it("keeps its lock for later events after a savepoint was rolled back", async () => {
    const before = await lastSettled(test.database.db);
    await test.database.inTx(async (tx) => {
      const part = inSavepoint(tx, async () => {
        await write(tx, "nodes/taken-back");
        throw new Error("the part is refused");
      });
      await expect(part).rejects.toThrow("the part is refused");
      await write(tx, "nodes/kept");
      await writeAlone("nodes/other");
      expect(await subjectsAfter(before)).toEqual([]);
    });
    expect(await subjectsAfter(before)).toEqual(["nodes/kept", "nodes/other"]);
  });
});
