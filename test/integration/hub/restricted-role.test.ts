/** A hub whose database role owns no table and cannot change the audit, with the SQL statements of docs/audit.md. */
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { readOf } from "../../support/documents.ts";
import { HubApi } from "../../support/hub-api.ts";
import { runHubCommand } from "../../support/hub-command.ts";
import { freeHubPorts, startHubProcess } from "../../support/hub-process.ts";
import { newHubFolder, removeHubState } from "../../support/hub-state.ts";
import { ensureSku } from "../../support/seed-site.ts";
import { until } from "../../support/until.ts";

/** Other tests use the same server, so the roles and the database get names of their own. */
const mark = randomUUID().slice(0, 8);
const [MAKE = "", GIVE = ""] = [...readOf("docs/audit.md").matchAll(/```sql\n([^`]+)```/g)].map(([, sql = ""]) =>
  sql
    .replaceAll(/\bmuster_(owner|hub)\b/g, `muster_$1_${mark}`)
    .replaceAll(/DATABASE muster\b/g, `DATABASE muster_${mark}`),
);
const folder = newHubFolder("muster-role-");
let admin: TestDatabase;
const urlOf = (role: string): string => {
  const url = new URL(admin.url);
  return Object.assign(url, {
    pathname: `/muster_${mark}`,
    username: `muster_${role}_${mark}`,
    password: `${role}-password`,
  }).href;
};
const run = async (url: string, text: string) => {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
};
const asOwner = (text: string) => run(urlOf("owner"), text);
const asHub = (text: string) => run(urlOf("hub"), text);
const statements = (text: string): string[] =>
  text
    .split(";")
    .map((one) => one.trim())
    .filter((one) => one !== "");

beforeAll(async () => {
  admin = await createTestDatabase();
});
afterAll(async () => {
  const { pool } = admin.database;
  await pool.query(`drop database if exists muster_${mark} with (force)`);
  for (const role of ["owner", "hub"]) await pool.query(`drop role if exists muster_${role}_${mark}`);
  await admin.drop();
  removeHubState(folder);
});

it("runs with the rights of docs/audit.md, and can add audit entries and neither change nor remove them", async () => {
  for (const statement of statements(MAKE)) await admin.database.pool.query(statement);
  const env = (role: string) => ({ DATABASE_URL: urlOf(role), MUSTER_STATE_DIR: join(folder, "state") });
  const ports = await freeHubPorts();
  const serve = { MUSTER_HTTP_PORT: String(ports.http), MUSTER_AGENT_PORT: String(ports.agent) };
  const refusedStart = () => runHubCommand([], { ...env("hub"), ...serve }).ended;
  expect(await refusedStart()).toEqual({
    status: 1,
    told: expect.stringMatching(/The database has no tables of Muster.*Run the command migrate of this version/),
  });
  expect(await runHubCommand(["migrate"], env("owner")).ended).toMatchObject({ status: 0 });
  expect(await refusedStart()).toEqual({
    status: 1,
    told: expect.stringContaining("may not read the tables of Muster"),
  });
  for (const statement of statements(GIVE)) await asOwner(statement);

  // The database is as an older version left it.
  const journal = "drizzle.__drizzle_migrations";
  const [newest] = await asOwner(`select created_at from ${journal} order by created_at desc limit 1`);
  await asOwner(`update ${journal} set created_at = 1 where created_at = ${newest.created_at}`);
  expect(await refusedStart()).toEqual({
    status: 1,
    told: expect.stringContaining("The database is of an older version"),
  });
  await asOwner(`update ${journal} set created_at = ${newest.created_at} where created_at = 1`);

  const hub = startHubProcess({
    databaseUrl: urlOf("hub"),
    stateDir: join(folder, "state"),
    ports,
    logFile: join(folder, "hub.log"),
  });
  try {
    await hub.ready;
    const token = readFileSync(join(folder, "state", "admin-token"), "utf8").trim();
    await ensureSku(new HubApi(`http://127.0.0.1:${ports.http}`, token), {
      id: "h200",
      description: "",
      gpu_vendor: "nvidia",
      gpu_model: "H200",
      gpus_total: 8,
    });
    await until(
      "a sealed entry",
      async () =>
        (
          await asHub("select 1 from audit_seals s join audit_logs a on a.id = s.audit_id where a.action = 'createSku'")
        )[0],
    );
    // `restore` runs with the owner's role, and must see the hubs that run.
    const seen = await asOwner("select 1 from pg_stat_activity where application_name like 'muster-hub %' limit 1");
    expect(seen).toHaveLength(1);
    const backup = await runHubCommand(["backup", "--to", folder], env("hub")).ended;
    expect(backup, backup.told).toMatchObject({ status: 0 });
  } finally {
    await hub.stop();
  }
  expect(readFileSync(join(folder, "hub.log"), "utf8")).not.toMatch(/permission denied|must be owner/);

  for (const table of ["audit_logs", "audit_seals"])
    for (const act of [
      `update ${table} set ${table === "audit_logs" ? "actor" : "entry_sha256"} = 'eve'`,
      `delete from ${table}`,
      `truncate ${table}`,
      `alter table ${table} disable trigger all`,
      `drop table ${table} cascade`,
      `create trigger t before insert on ${table} execute function audit_refuse()`,
    ])
      await expect(asHub(act), act).rejects.toThrow(/permission denied|must be owner/);
  await expect(asHub("select muster_prune_audit(1)")).rejects.toThrow(/permission denied/);
  await expect(asHub("create table other (id int)")).rejects.toThrow(/permission denied/);
  await expect(asHub(`update ${journal} set created_at = 1`)).rejects.toThrow(/permission denied/);
  // A table of a later migration gets its rights by the default privileges.
  await asOwner("create table later (id bigserial)");
  await asHub("insert into later default values; delete from later");
});
