import { randomUUID } from "node:crypto";
import {
  appendFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import { Client } from "pg";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { dumpTables } from "../../../hub/backup/dump.ts";
import { tablesOf } from "../../../hub/backup/load.ts";
import { Manifest } from "../../../hub/backup/manifest.ts";
import { readBackup } from "../../../hub/backup/restore-backup.ts";
import { seal } from "../../../hub/backup/sums.ts";
import { MIGRATIONS_TABLE } from "../../../hub/backup/table-names.ts";
import { namedSecrets } from "../../../hub/copy-secrets/named-secrets.ts";
import { hasPosition } from "../../../hub/db/queries/domain-events-list.ts";
import { SECRET_PATHS } from "../../../hub/secrets/port.ts";
import { openSealedFileStore } from "../../../hub/secrets/sealed-file.ts";
import { ensureSameStore } from "../../../hub/startup/same-store.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { storedRows } from "../../support/database-text.ts";
import { type HubCommand, runHubCommand } from "../../support/hub-command.ts";
import { until } from "../../support/until.ts";
import { loadAsRecorded, loadRecord, RECORD_FILES, readRecord } from "../../upgrade/load-record.ts";

/** A record of an old version has rows of all kinds, so the tests back up a database with such rows. */
const NEWEST_RECORD = RECORD_FILES.at(-1) ?? "";
let folder: string;
let source: TestDatabase;
let target: TestDatabase;
let commands: HubCommand[];

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "muster-backup-"));
  commands = [];
  [source, target] = [await createTestDatabase(), await createTestDatabase()];
  await loadRecord(source, readRecord(NEWEST_RECORD));
  await empty(target);
});
afterEach(async () => {
  for (const { process } of commands) process.kill("SIGKILL");
  await Promise.all(commands.map(({ ended }) => ended));
  await source.drop();
  await target.drop();
  rmSync(folder, { recursive: true, force: true });
});

async function empty({ database }: TestDatabase): Promise<void> {
  await database.pool.query("drop schema if exists drizzle cascade; drop schema public cascade; create schema public");
}

/** Gives the rows of the source database a secret store that has all secrets that the rows name. */
async function makeStore(state: string): Promise<void> {
  const secrets = await openSealedFileStore({ directory: join(state, "secrets") });
  await source.database.pool.query("delete from installation");
  await ensureSameStore(source.database.db, secrets);
  for (const { path } of await namedSecrets(source.database.db)) await secrets.write(path, { value: `of ${path}` });
}

function run(words: readonly string[], database: TestDatabase, state: string): HubCommand {
  const command = runHubCommand(words, { DATABASE_URL: database.url, MUSTER_STATE_DIR: state });
  commands.push(command);
  return command;
}

async function backUp(state: string): Promise<string> {
  const { status, told } = await run(["backup", "--to", folder], source, state).ended;
  expect({ status, told }).toEqual({ status: 0, told: expect.stringContaining("Backup: ") });
  return /^Backup: (.*)$/m.exec(told)?.[1] ?? "";
}

const restore = (backup: string, state: string, ...words: string[]) =>
  run(["restore", "--from", backup, ...words], target, state).ended;

async function rowsOf({ database }: TestDatabase): Promise<string[]> {
  return (await storedRows(database.pool)).map(({ table, text }) => `${table} ${text}`).sort();
}

/** No host gets a tenant, and no operation cleans or releases a host, before a person has looked at the host. */
async function expectHeldBack(told: string): Promise<void> {
  const { rows: nodes } = await target.database.pool.query<{ held: boolean }>(
    `select exists (select 1 from node_health_overrides o where o.node_id = n.id and o.source = 'restore' and o.set_by = 'restore') as held
       from nodes n where n.status <> 'deleted'`,
  );
  expect(new Set(nodes.map(({ held }) => held))).toEqual(new Set([true]));
  const { rows } = await target.database.pool.query<{ stopped: boolean; cleans: boolean; undoes: boolean }>(
    `select coalesce(w.stop_request ->> 'verb' = 'mark_manual_intervention' and w.wake_at <= now(), false) as stopped, w.status = 'compensating' as undoes,
            exists (select 1 from node_decommissions d where d.decommission_id = w.id) as cleans
       from workflows w where w.status in ('pending', 'running', 'compensating')`,
  );
  // A record has operations of each kind under way.
  for (const { stopped, cleans, undoes } of rows) expect(stopped).toBe(cleans || undoes);
  const stopped = rows.filter((row) => row.stopped).length;
  expect([rows.some((row) => row.cleans), stopped < rows.length]).toEqual([true, true]);
  expect(told).toContain(`${nodes.length} nodes get no new tenant`);
  expect(told).toContain(`${stopped} operations that clean or release hosts wait for you`);
}

describe("backup and restore", { timeout: 300_000 }, () => {
  it("bring each row and each secret to another database and another folder, and tell the readers of events", async () => {
    const [state, other] = [join(folder, "hub"), join(folder, "other")];
    await makeStore(state);
    const before = await rowsOf(source);
    const backup = await backUp(state);
    await execa("bash", ["-euc", "sha256sum --check --quiet SHA256SUMS"], { cwd: backup });
    expect(readdirSync(join(backup, "secrets"))).not.toContain("key");

    mkdirSync(join(other, "secrets"), { recursive: true, mode: 0o700 });
    cpSync(join(state, "secrets/key"), join(other, "secrets/key"));
    const { status, told } = await restore(backup, other, "--without-holds");
    expect({ status, told }).toEqual({ status: 0, told: expect.stringContaining("Restored the database as of") });
    const after = await rowsOf(target);
    expect(after.filter((row) => !before.includes(row)).map((row) => row.split(" ")[0])).toEqual([
      "public.audit_logs",
      "public.database_restores",
      "public.domain_events",
    ]);
    expect(before.filter((row) => !after.includes(row))).toEqual([]);
    const { rows: known } = await target.database.pool.query("select from pg_stats where tablename = 'nodes' limit 1");
    expect(known, "PostgreSQL has statistics of the tables").toHaveLength(1);
    const secrets = await openSealedFileStore({ directory: join(other, "secrets") });
    for (const { path } of await namedSecrets(target.database.db))
      expect(await secrets.read(path)).toEqual({ value: `of ${path}` });

    const { rows } = await target.database.pool.query<{ seq: string; last: string }>(
      "select seq::text, data ->> 'last_sequence' as last from domain_events where type = 'hub.database.restored'",
    );
    const [event] = rows;
    expect(rows).toHaveLength(1);
    const last = BigInt(event?.last ?? "");
    // A reader that has read an event of the lost database must read everything again; a reader of an older event missed nothing.
    expect(await hasPosition(target.database.db, last)).toBe(true);
    expect(await hasPosition(target.database.db, last + 1n)).toBe(false);
    expect(await hasPosition(target.database.db, BigInt(event?.seq ?? ""))).toBe(true);
    const refused = await target.database.pool
      .query("delete from sanitization_records where record_id = (select record_id from sanitization_records limit 1)")
      .catch((error: Error) => error.message);
    expect(refused).toMatch(/never changed or removed/);
    const constraints =
      "select conname, pg_get_constraintdef(oid) as def, convalidated from pg_constraint where connamespace = 'public'::regnamespace order by 1, 2";
    expect((await target.database.pool.query(constraints)).rows).toEqual(
      (await source.database.pool.query(constraints)).rows,
    );
  });

  it("bring an outside database into an embedded one, as the exercise of a loss does, and back", async () => {
    const [state, drill] = [join(folder, "hub"), join(folder, "drill")];
    await makeStore(state);
    const before = await rowsOf(source);
    const backup = await backUp(state);
    mkdirSync(join(drill, "secrets"), { recursive: true, mode: 0o700 });
    cpSync(join(state, "secrets/key"), join(drill, "secrets/key"));
    const embedded = async (...words: string[]): Promise<string> => {
      const command = runHubCommand(words, { DATABASE_URL: "", MUSTER_STATE_DIR: drill });
      commands.push(command);
      const { status, told } = await command.ended;
      expect({ status, told }).toEqual({ status: 0, told: expect.any(String) });
      return told;
    };
    const told = await embedded("restore", "--from", backup, "--without-holds");
    expect(told).toMatch(/Restored the database as of/);
    expect(told).not.toMatch(/missing/i);
    const nowhere = await run(["backup", "--to", join(folder, "again")], source, state).ended;
    expect(nowhere).toEqual({
      status: 1,
      told: expect.stringMatching(/There is no folder .*again for the backup\. Make/),
    });
    mkdirSync(join(folder, "again"));
    const again = /^Backup: (.*)$/m.exec(await embedded("backup", "--to", join(folder, "again")))?.[1] ?? "";
    const { status, told: back } = await restore(again, state, "--without-holds");
    expect({ status, told: back }).toMatchObject({ status: 0 });
    const after = await rowsOf(target);
    expect(before.filter((row) => !after.includes(row))).toEqual([]);
  });

  it("leave the database as it is when a backup is damaged, of a newer version, or of another store", async () => {
    const state = join(folder, "hub");
    await makeStore(state);
    const backup = await backUp(state);
    const refusal = async (change: (copy: string) => void): Promise<string> => {
      const copy = join(folder, "copy");
      rmSync(copy, { recursive: true, force: true });
      cpSync(backup, copy, { recursive: true });
      change(copy);
      return readBackup(copy).then(
        () => "whole",
        (error: Error) => error.message,
      );
    };
    expect(await refusal(() => undefined)).toBe("whole");
    const rewrite = (copy: string, change: (manifest: Manifest) => object): void => {
      const file = join(copy, "manifest.json");
      writeFileSync(file, JSON.stringify(change(Manifest.parse(JSON.parse(readFileSync(file, "utf8"))))));
    };
    const [table = ""] = readdirSync(join(backup, "tables"));
    expect(await refusal((copy) => appendFileSync(join(copy, "tables", table), "x"))).toMatch(/was changed/);
    expect(await refusal((copy) => rmSync(join(copy, "tables", table)))).toMatch(/is missing/);
    expect(await refusal((copy) => writeFileSync(join(copy, "more"), ""))).toMatch(/more is not in SHA256SUMS/);
    expect(await refusal((copy) => rmSync(join(copy, "SHA256SUMS")))).toMatch(/no whole backup/);
    const sealed = async (change: (manifest: Manifest) => object): Promise<void> => {
      rmSync(join(folder, "newer"), { recursive: true, force: true });
      cpSync(backup, join(folder, "newer"), { recursive: true });
      rewrite(join(folder, "newer"), change);
      rmSync(join(folder, "newer/SHA256SUMS"));
      await seal(join(folder, "newer"));
    };
    await sealed((manifest) => ({ ...manifest, migrations: [...manifest.migrations, 9_999_999_999_999] }));
    await expect(readBackup(join(folder, "newer"))).rejects.toThrow(/newer than this Muster/);
    await sealed((manifest) => ({
      ...manifest,
      tables: manifest.tables.map((one) => ({ ...one, rows: one.rows + 1 })),
    }));
    expect((await restore(join(folder, "newer"), state)).told).toMatch(/rows of .* were loaded/);
    expect(await rowsOf(target)).toEqual([]);

    expect((await restore(backup, join(folder, "no-key"))).told).toMatch(/The key of the secret store is not in/);
    mkdirSync(join(folder, "wrong/secrets"), { recursive: true, mode: 0o700 });
    writeFileSync(join(folder, "wrong/secrets/key"), Buffer.alloc(32, 7), { mode: 0o600 });
    expect((await restore(backup, join(folder, "wrong"))).told).toMatch(/its key does not open the backup/);
    expect(readdirSync(join(folder, "wrong/secrets"))).toEqual(["key"]);
    expect(await rowsOf(target)).toEqual([]);
  });

  it("need --replace for a database with content, and a kill during the load changes nothing", async () => {
    const state = join(folder, "hub");
    await makeStore(state);
    const backup = await backUp(state);
    const first = await restore(backup, state);
    expect(first.status).toBe(0);
    await expectHeldBack(first.told);
    await target.database.pool.query(
      "insert into skus (id, description, gpu_vendor, gpu_model, gpus_total) values ('since', '', 'amd', '', 8)",
    );
    const before = await rowsOf(target);
    const again = await restore(backup, state);
    expect([again.status, again.told]).toEqual([1, expect.stringMatching(/not empty.*--replace/)]);

    // A reader's lock keeps the command from the removal of one table, so the command is killed in the middle of its transaction.
    const reader = new Client({ connectionString: target.url });
    reader.on("error", () => undefined);
    await reader.connect();
    await reader.query("begin; select from webhooks");
    const killed = run(["restore", "--from", backup, "--replace"], target, state);
    await until("the command waits for the lock", async () => {
      const { rows } = await target.database.pool.query(
        "select 1 from pg_stat_activity where datname = current_database() and application_name = 'muster-restore' and wait_event_type = 'Lock'",
      );
      return rows.length > 0 ? true : undefined;
    });
    killed.process.kill("SIGKILL");
    await killed.ended;
    await reader.query("rollback");
    await reader.end();
    expect(await rowsOf(target)).toEqual(before);

    expect((await restore(backup, state, "--replace")).status).toBe(0);
    expect((await rowsOf(target)).some((row) => row.includes("since,"))).toBe(false);
    await target.database.pool.query("create table of_others (id int)");
    const others = "create function of_others_too() returns int language sql as 'select 1'";
    await target.database.pool.query(others);
    const { told } = await restore(backup, state, "--replace");
    expect(told).toMatch(/not Muster's \(public.of_others, public.of_others_too\)/);
    await target.database.pool.query("drop table of_others; drop function of_others_too()");
    expect((await restore(backup, state, "--replace")).status, "with Muster's own functions").toBe(0);
  });

  it("load a backup of each recorded older version, and bring it to this version", async () => {
    const state = join(folder, "hub");
    const secrets = await openSealedFileStore({ directory: join(state, "secrets") });
    for (const file of RECORD_FILES) {
      const record = readRecord(file);
      // A hub before the migration of secret stores had no id of its secret store, and no command `backup`.
      if (!record.migrations.includes("0001_claims_and_installation")) continue;
      await loadAsRecorded(source, record);
      const id = randomUUID();
      await source.database.pool.query("delete from installation");
      await source.database.pool.query("insert into installation (secret_store_id) values ($1)", [id]);
      await secrets.write(SECRET_PATHS.storeId, { id });
      const client = new Client({ connectionString: source.url });
      await client.connect();
      const backup = join(folder, file);
      mkdirSync(backup);
      const { dumped } = await dumpTables(client, backup, async () => null, [
        ...(await tablesOf(client)),
        MIGRATIONS_TABLE,
      ]);
      await client.end();
      cpSync(join(state, "secrets"), join(backup, "secrets"), { recursive: true });
      rmSync(join(backup, "secrets/key"));
      const manifest = {
        format: 1,
        hub_version: record.version,
        ...dumped,
        store_id: id,
        secrets: "sealed_file",
      };
      writeFileSync(join(backup, "manifest.json"), JSON.stringify(manifest));
      await seal(backup);
      const { status, told } = await restore(backup, state, "--replace");
      expect({ status, told }).toEqual({ status: 0, told: expect.stringContaining("Restored the database as of") });
      await loadRecord(source, record);
      const migrations = `select hash, created_at from ${MIGRATIONS_TABLE} order by id`;
      expect((await target.database.pool.query(migrations)).rows).toEqual(
        (await source.database.pool.query(migrations)).rows,
      );
      const counts = "select (select count(*) from workflows) as workflows, (select count(*) from nodes) as nodes";
      expect((await target.database.pool.query(counts)).rows).toEqual((await source.database.pool.query(counts)).rows);
    }
  });

  it("refuse a database that no hub has used, a store of another installation, and unknown arguments", async () => {
    const state = join(folder, "hub");
    await makeStore(state);
    const others = await run(["backup", "--to", folder], source, join(folder, "another")).ended;
    expect([others.status, others.told]).toEqual([1, expect.stringMatching(/There is no such secret/)]);
    const missing = SECRET_PATHS.taskSigningKey;
    await (await openSealedFileStore({ directory: join(state, "secrets") })).remove(missing);
    expect((await run(["backup", "--to", folder], source, state).ended).told).toMatch(`  ${missing}\n`);
    await source.database.pool.query("delete from installation");
    expect((await run(["backup", "--to", folder], source, state).ended).told).toMatch(/nothing to back up/);
    expect(readdirSync(folder).filter((name) => name.includes("partial"))).toEqual([]);
    expect(await run(["restore"], target, state).ended).toEqual({
      status: 2,
      told: expect.stringMatching(/hub restore --from/),
    });
  });
});
