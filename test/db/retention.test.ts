import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, it } from "vitest";
import { sql } from "../../hub/db/orm.ts";
import { RETENTION, removeOutdated } from "../../hub/db/queries/retention.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { until } from "../support/until.ts";

let test: TestDatabase;
beforeAll(async () => {
  test = await createTestDatabase();
});
afterAll(() => test?.drop());

const count = async (table: string): Promise<number> => {
  const { rows } = await test.database.db.execute<{ n: number }>(
    sql`select count(*)::int as n from ${sql.identifier(table)}`,
  );
  return rows[0]?.n ?? -1;
};

it("removes what is older than it is kept, and nothing that something may still decide by", async () => {
  const { db } = test.database;
  const [node, other] = [randomUUID(), randomUUID()];
  const old = sql`now() - interval '91 days'`;
  await db.execute(sql`insert into readiness_signals (id, node_id, generation, source, conditions, applied, received_at)
    select gen_random_uuid(), ${node}, 1, 'agent', '[]', true, ${old} from generate_series(1, 12000)`);
  await db.execute(sql`insert into readiness_signals (id, node_id, generation, source, conditions, applied)
    values (gen_random_uuid(), ${node}, 1, 'agent', '[]', true)`);
  const certificate = (serial: string, of: string, issued: number) =>
    db.execute(sql`insert into node_certificates (serial, node_id, generation, public_key_sha256, not_before, not_after, issued_at)
      values (${serial}, ${of}, 1, 'f', ${old}, ${old}, now() - make_interval(days => ${issued}))`);
  await certificate("older of two", node, 95);
  await certificate("newer of two", node, 94);
  await certificate("the only one", other, 95);
  const running = randomUUID();
  await db.execute(sql`insert into workflows (id, kind, status, stage, input, completed_at) values
    (${running}, 'onboard', 'running', 's', '{}', null)`);
  const task = (workflow: string | null, finished: boolean, type = "node.drain") =>
    db.execute(sql`insert into tasks (node_id, workflow_id, type, input, idempotency_key, deadline, state, finished_at)
      values (${node}, ${workflow}, ${type}, '{}', ${randomUUID()}, ${old}, 'succeeded', ${finished ? old : sql`null`})`);
  await task(null, true);
  await task(running, true);
  await task(null, false);
  await task(null, true, "node.undrain");

  const removed = await removeOutdated(db, 90);

  expect(Object.keys(removed).sort()).toEqual(RETENTION.map((rule) => rule.table).sort());
  expect(removed).toMatchObject({ readiness_signals: 12_000, node_certificates: 1, tasks: 1, enrollment_tokens: 0 });
  expect([await count("readiness_signals"), await count("node_certificates"), await count("tasks")]).toEqual([1, 2, 3]);
  const { rows } = await db.execute<{ serial: string }>(sql`select serial from node_certificates order by serial`);
  expect(rows.map((row) => row.serial)).toEqual(["newer of two", "the only one"]);
  expect(await removeOutdated(db, 90)).toMatchObject({ readiness_signals: 0, tasks: 0 });
});

it("removes events from the oldest on and without a gap, also while another removes some", async () => {
  const { db, pool } = test.database;
  const ages = [100, 100, 100, 1, 100, 1];
  for (const [index, age] of ages.entries())
    await db.execute(sql`insert into domain_events (seq, type, subject, data, occurred_at)
      values (${index + 1}, 'node.status.changed', 'nodes/n', '{}', now() - make_interval(days => ${age}))`);
  const left = async () => {
    const { rows } = await db.execute<{ seq: string }>(sql`select seq::text from domain_events order by seq`);
    return rows.map(({ seq }) => Number(seq));
  };
  const other = await pool.connect();
  await other.query("begin");
  await other.query("select 1 from domain_events where seq = 1 for update");
  const removing = removeOutdated(db, 90);
  await until("it waits for the other", async () => {
    const { rows } = await db.execute(
      sql`select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    );
    return rows.length > 0 ? true : undefined;
  });
  expect(await left()).toEqual([1, 2, 3, 4, 5, 6]);
  await other.query("commit");
  other.release();
  expect(await removing).toMatchObject({ domain_events: 2 });
  // The newest that is outdated stays, and so does the old one after a young one.
  expect(await left()).toEqual([3, 4, 5, 6]);
});
