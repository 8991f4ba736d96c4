/** The hubs' own check of the audit chain, with a real database. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { checkNext } from "../../../hub/audit/check-chain.ts";
import { KeptHeads } from "../../../hub/audit/kept-heads.ts";
import { sealAll } from "../../../hub/audit/sealer.ts";
import { pruneAudit } from "../../../hub/db/queries/audit-prune.ts";
import { recordActs, tamperWith } from "../../support/audit-chain.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { quietLog } from "../../support/log.ts";

let test: TestDatabase;
let folder: string;
let heads: KeptHeads;

const query = async (text: string) => (await test.database.pool.query(text)).rows;
const options = () => ({ ...test.database, log: quietLog, heads });
const seal = () => sealAll(options(), null);
const record = (count: number, action?: string) => recordActs(test, count, action);
const tamper = (statement: string) => tamperWith(test, statement);

beforeAll(async () => {
  test = await createTestDatabase();
  folder = mkdtempSync(join(tmpdir(), "muster-audit-"));
});
afterAll(async () => {
  await test?.drop();
  rmSync(folder, { recursive: true, force: true });
});
beforeEach(async () => {
  await tamper("truncate audit_logs, audit_seals restart identity");
  heads = await KeptHeads.open(mkdtempSync(join(folder, "state-")));
});

describe("the hubs' own check", () => {
  const check = (mostEntries = 10_000) => checkNext({ ...options(), restSeconds: 0, mostEntries });
  const progress = async () =>
    (
      await query(
        "select position::int, at_end, faults, faults_before, verified_through::int as verified, (head ->> 'sequence')::int as head from audit_checks",
      )
    )[0];
  const inAnHour = () =>
    query(
      "update audit_checks set began_at = began_at - interval '1 hour', part_began_at = part_began_at - interval '1 minute'",
    );
  beforeEach(() => query("delete from audit_checks"));

  it("goes part by part to the end, waits there for new entries, goes on with them, and begins again after an hour", async () => {
    await record(25);
    await seal();
    const at: [number, boolean, number][] = [];
    const turn = async () => {
      await check(10);
      const { position, at_end: atEnd, verified: through } = await progress();
      at.push([position, atEnd, through]);
    };
    for (let part = 0; part < 4; part += 1) await turn();
    await record(4);
    await seal();
    await turn();
    await inAnHour();
    await turn();
    expect(at).toEqual([
      [10, false, 10],
      [20, false, 20],
      [25, true, 25],
      [25, true, 25],
      [29, true, 29],
      [10, false, 29],
    ]);
    expect(await progress()).toMatchObject({ faults: 0, faults_before: 0 });
  });

  it("finds a changed old entry, says so once, and forgets the fault after a whole check without one", async () => {
    await record(9);
    await seal();
    await check();
    await tamper("update audit_logs set actor = 'eve' where id = 5");
    const errors: unknown[] = [];
    const log = { ...quietLog, error: (_: string, about?: object) => void errors.push(about) };
    const again = async () => {
      await inAnHour();
      await checkNext({ ...options(), log, restSeconds: 0 });
    };
    await again();
    expect(await progress()).toMatchObject({ faults: 1, faults_before: 1 });
    await again();
    expect(errors).toEqual([{ fault: "content_changed", sequence: 5 }]);
    await tamper("update audit_logs set actor = 'ann' where id = 5");
    await again();
    expect(await progress()).toMatchObject({ faults: 0, faults_before: 0 });
  });

  it.each([
    ["in the next part", 0, 0],
    ["in the next part after the chain has grown as far again", 0, 3],
    ["in the next part after the chain has grown further", 0, 5],
    ["in the next check", 1, 0],
    ["in the next check after the chain has grown further", 1, 5],
  ])("finds a cut end of the chain %s, and forgets it with no later check", async (_, hours, more) => {
    await record(9);
    await seal();
    await check();
    expect(await progress()).toMatchObject({ faults: 0, head: 9 });
    await tamper("delete from audit_seals where sequence > 6; delete from audit_logs where id > 6");
    await record(more, "test.later");
    await seal();
    if (hours > 0) await inAnHour();
    const logged: unknown[] = [];
    const log = { ...quietLog, error: (_: string, about?: object) => void logged.push(about) };
    const part = () => checkNext({ ...options(), log, restSeconds: 0 });
    await part();
    const fault = more < 3 ? { fault: "head_missing", sequence: 7 } : { fault: "head_differs", sequence: 9 };
    expect(logged).toEqual([fault]);
    expect(await progress()).toMatchObject({ at_end: true, faults: 1, faults_before: 1 });
    await record(2, "test.later");
    await seal();
    await inAnHour();
    await part();
    const end = 8 + more;
    expect(await progress()).toMatchObject({ position: end, faults_before: 1, verified: Math.max(9, end), head: 9 });
    expect(logged).toHaveLength(1);
  });

  it("forgets a lost head when retention has removed the entries up to it", async () => {
    await record(6);
    await tamper("update audit_logs set occurred_at = now() - interval '401 days' where id <= 4");
    await seal();
    await check(4);
    await query("update audit_checks set head = jsonb_set(head, '{entry_sha256}', '\"rewritten\"')");
    await check();
    expect(await progress()).toMatchObject({ position: 6, faults: 1, faults_before: 1, head: 4 });
    expect(await pruneAudit(test.database.inTx, 400)).toBe(4);
    await seal();
    await inAnHour();
    await check();
    expect(await progress()).toMatchObject({ position: 7, faults: 0, faults_before: 0, head: 7 });
  });

  it("is done by one of two hubs in a period, and a slow hub writes nothing over the next part", async () => {
    await record(3);
    await seal();
    await Promise.all([1, 2, 3].map(() => checkNext(options())));
    expect(await query("select part::int from audit_checks")).toEqual([{ part: 1 }]);
    const slow = { ...options(), restSeconds: 0 };
    const warned: string[] = [];
    await checkNext({
      ...slow,
      log: { ...quietLog, warn: (message: string) => void warned.push(message) },
      // Another hub claims the next part while this hub reads the chain.
      inTx: async (work, how) => {
        await query("update audit_checks set part = part + 1, position = 77");
        return options().inTx(work, how);
      },
    });
    expect(await progress()).toMatchObject({ position: 77 });
    expect(warned).toEqual([expect.stringContaining("another hub has begun the next part")]);
  });

  it("counts the lost heads of a hub until a person removes their files", async () => {
    await record(9);
    await seal();
    expect(await heads.countLost()).toBe(0);
    await tamper("delete from audit_seals where sequence > 6; delete from audit_logs where id > 6");
    await seal();
    expect(await heads.countLost()).toBe(1);
  });
});
