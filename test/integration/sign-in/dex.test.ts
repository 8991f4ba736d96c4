/**
 * The sign-in by a real Dex. The suite runs if the program `dex` is installed, or if MUSTER_TEST_DEX names it. Dex never answers a renewal while its
 * storage is in memory, so only the other suites renew claims and logins.
 */
import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { execa } from "execa";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Child } from "../../support/child.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { freePort } from "../../support/free-port.ts";
import { freeHubPorts, startHubProcess } from "../../support/hub-process.ts";
import { newHubFolder, removeHubState } from "../../support/hub-state.ts";
import { SmallBrowser, type Visited } from "../../support/small-browser.ts";
import { until } from "../../support/until.ts";

const DEX = process.env["MUSTER_TEST_DEX"] ?? "dex";
const NO_DEX = (await execa(DEX, ["version"], { reject: false })).exitCode !== 0;
if (NO_DEX)
  process.stderr.write("SKIPPED: Dex is not installed. Put `dex` on the PATH, or name it by MUSTER_TEST_DEX\n");

const CLI = new URL("../../../hub/cli/main.ts", import.meta.url).pathname;
/** bcrypt of the password `password`, for a person who exists in this test only. */
const HASH = "$2a$10$2b2cU8CPhOTaGrs1HRQuAueS7JTT5ZHsHSzYiFPm1leZck7Mc8T4W";
const PERSON = { login: "ann@example.com", password: "password" };

const configOf = (port: number, callback: string): string =>
  JSON.stringify({
    issuer: `http://127.0.0.1:${port}/dex`,
    storage: { type: "memory" },
    web: { http: `127.0.0.1:${port}` },
    oauth2: { skipApprovalScreen: true },
    staticClients: [
      { id: "muster", name: "Muster", secret: "secret-of-the-page", redirectURIs: [callback] },
      { id: "muster-cli", name: "muster", public: true, redirectURIs: ["/device/callback", "/dex/device/callback"] },
    ],
    enablePasswordDB: true,
    staticPasswords: [
      {
        email: PERSON.login,
        hash: HASH,
        username: "ann",
        preferredUsername: "ann",
        userID: "08a8684b-db88-4b73-90a9-3cd1661f5466",
        groups: ["gpu-admins"],
      },
    ],
  });

/** Fills in the form of a page, and follows the way on. */
async function submit(browser: SmallBrowser, page: Visited, values: Record<string, string>): Promise<Visited> {
  const action = /<form[^>]*action="([^"]+)"/.exec(page.text)?.[1]?.replaceAll("&amp;", "&") ?? page.url;
  return browser.visit(new URL(action, page.url).href, {
    method: "POST",
    headers: { "content-type": "application/x-www-form-urlencoded" },
    body: new URLSearchParams(values).toString(),
  });
}

describe.skipIf(NO_DEX)("a sign-in by Dex", () => {
  const folder = newHubFolder("muster-dex-");
  let database: TestDatabase;
  let hub: Child;
  let url: string;
  let dex: ReturnType<typeof spawn>;
  beforeAll(async () => {
    const [ports, port] = [await freeHubPorts(), await freePort()];
    url = `http://127.0.0.1:${ports.http}`;
    const issuer = `http://127.0.0.1:${port}/dex`;
    writeFileSync(join(folder, "dex.json"), configOf(port, `${url}/sign-in/callback`));
    writeFileSync(join(folder, "secret"), "secret-of-the-page");
    const rules = [{ claim: "groups", value: "gpu-admins", role: "operator" }];
    writeFileSync(join(folder, "roles.json"), JSON.stringify(rules));
    dex = spawn(DEX, ["serve", join(folder, "dex.json")], { stdio: "ignore" });
    await until(
      "Dex to answer",
      async () => (await fetch(`${issuer}/.well-known/openid-configuration`)).ok || undefined,
    );
    database = await createTestDatabase();
    hub = startHubProcess({
      databaseUrl: database.url,
      stateDir: join(folder, "state"),
      ports,
      env: {
        MUSTER_PUBLIC_URL: url,
        MUSTER_OIDC_ISSUER: issuer,
        MUSTER_OIDC_CLIENT_ID: "muster",
        MUSTER_OIDC_CLIENT_SECRET_FILE: join(folder, "secret"),
        MUSTER_OIDC_CLI_CLIENT_ID: "muster-cli",
        MUSTER_OIDC_SCOPES: "openid profile email groups offline_access",
        MUSTER_OIDC_CLI_SCOPES: "openid profile email groups offline_access",
        MUSTER_OIDC_AUDIENCE: "muster-cli",
        MUSTER_OIDC_TOKEN_TYPE: "any",
        MUSTER_OIDC_ROLES_FILE: join(folder, "roles.json"),
      },
      logFile: join(folder, "hub.log"),
    });
    await hub.ready;
  });
  afterAll(async () => {
    await hub?.stop();
    dex?.kill();
    await database?.drop();
    removeHubState(folder);
  });
  const muster = (args: readonly string[]) =>
    execa(process.execPath, [CLI, ...args], {
      cwd: folder,
      extendEnv: false,
      env: { HOME: join(folder, "home"), MUSTER_URL: url, MUSTER_STATE_DIR: join(folder, "none") },
      reject: false,
    });

  it("makes a session of the page by code with PKCE", async () => {
    const browser = new SmallBrowser();
    const form = await browser.visit(`${url}/sign-in`);
    const consent = await submit(browser, form, PERSON);
    const [, req = ""] = /name="req" value="(\w+)"/.exec(consent.text) ?? [];
    const last = await browser.visit(consent.url, {
      method: "POST",
      headers: { "content-type": "application/x-www-form-urlencoded" },
      body: new URLSearchParams({ req, approval: "approve" }).toString(),
    });
    expect(last.url, last.text).toBe(`${url}/console/`);
    const answer = await browser.send(`${url}/api/v1/admin/status`);
    expect(((await answer.json()) as { you: object }).you).toMatchObject({ name: "oidc:ann", role: "operator" });
    const { rows } = await database.database.pool.query("select refresh_sealed is not null as kept from page_sessions");
    expect(rows).toEqual([{ kept: true }]);
  });

  it("logs the command line in by the device flow", async () => {
    const command = muster(["login"]);
    let told = "";
    command.stderr?.on("data", (part) => {
      told += String(part);
    });
    const address = await until("the address with the code", () => /(http:\S+user_code=\S+)/.exec(told)?.[1]);
    const browser = new SmallBrowser();
    const code = new URL(address).searchParams.get("user_code") ?? "";
    const login = await submit(browser, await browser.visit(address), { user_code: code });
    await submit(browser, login, PERSON);
    expect(await command).toMatchObject({
      exitCode: 0,
      stdout: `Logged in at ${url} as oidc:ann with the role operator.`,
    });
    expect(await muster(["list-skus"])).toMatchObject({ exitCode: 0, stderr: "" });
  });
});
