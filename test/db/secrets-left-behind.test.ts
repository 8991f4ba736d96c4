import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { DEFAULT_API_KEY } from "../fakes/maas/state/seed.ts";
import { SITE_BMC_PASSWORD } from "../fakes/maas/state/site.ts";
import { createTestDatabase } from "../support/database.ts";
import { DEPLOY_PASSWORD } from "../support/deploy-password.ts";
import { knownSecrets, leaksInLogsBelow } from "../support/known-secrets.ts";
import { quietLog } from "../support/log.ts";

const secret = DEFAULT_API_KEY.split(":")[2] ?? "";

describe("a test file that leaves a secret behind", () => {
  it.each([
    ["in a text", "create table scratch.leak as select $1::text as at_rest", SITE_BMC_PASSWORD, "BMC password"],
    ["in JSON", "create table scratch.leak as select jsonb_build_object('a', $1::text)", DEPLOY_PASSWORD, "deploy"],
    ["in bytes", "create table scratch.leak as select convert_to($1::text, 'UTF8')", secret, "MAAS token, in hex"],
  ])("fails when its database is dropped: %s of a row", async (_where, statement, leaked, told) => {
    const test = await createTestDatabase();
    const { pool } = test.database;
    await pool.query("create schema scratch");
    await pool.query(statement.replace("$1", `'${leaked.replaceAll("'", "''")}'`));
    const dropped = await test.drop().catch((error: unknown) => String(error));
    expect(dropped).toMatch(/SecretLeaked.*scratch\.leak/);
    expect(dropped).toContain(told);
    expect(dropped).not.toContain(leaked);
  });

  it("fails when a line of the quiet log contained it, at any level", async () => {
    const test = await createTestDatabase();
    quietLog.debug("asked", { error: new Error(`&${secret}`) });
    await expect(test.drop()).rejects.toThrow("a log line");
    const next = await createTestDatabase();
    await next.drop();
  });

  it("fails when a log below a rig's folder contains it", () => {
    const folder = mkdtempSync(join(tmpdir(), "muster-leak-"));
    mkdirSync(join(folder, "hosts/h1/var/log"), { recursive: true });
    writeFileSync(join(folder, "maas.log"), secret);
    expect(leaksInLogsBelow(folder, knownSecrets())).toEqual([]);
    writeFileSync(join(folder, "hosts/h1/var/log/cloud-init-output.log"), Buffer.from(secret).toString("base64"));
    expect(leaksInLogsBelow(folder, knownSecrets())).toHaveLength(1);
    rmSync(folder, { recursive: true });
    expect(existsSync(folder)).toBe(false);
  });
});
