import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { request } from "node:https";
import { join } from "node:path";
import { execa } from "execa";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startAdminServer } from "../../../hub/http/server.ts";
import { openTlsFiles, TlsFilesError } from "../../../hub/http/tls-files.ts";
import { createLog } from "../../../shared/log.ts";
import { TestAuthority } from "../../fakes/hub/authority.ts";
import { type Child, startChild } from "../../support/child.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { freePort } from "../../support/free-port.ts";
import { newHubFolder, removeHubState } from "../../support/hub-state.ts";
import { quietLog } from "../../support/log.ts";
import { until } from "../../support/until.ts";

const CLI = new URL("../../../hub/cli/main.ts", import.meta.url).pathname;
const DAY_MS = 86_400_000;
const folder = newHubFolder("muster-tls-");
const certFile = join(folder, "cert.pem");
const keyFile = join(folder, "key.pem");
const files = { MUSTER_HTTP_TLS_CERT: certFile, MUSTER_HTTP_TLS_KEY: keyFile };
let authority: TestAuthority;

function put({ cert, key }: { cert: string; key: string }): void {
  for (const [file, text] of [
    [certFile, cert],
    [keyFile, key],
  ] as const) {
    writeFileSync(`${file}.new`, text, { mode: 0o600 });
    renameSync(`${file}.new`, file);
  }
}
const endOf = (port: number): Promise<string> =>
  new Promise((resolve, reject) => {
    const asked = request(
      { host: "127.0.0.1", port, path: "/healthz", ca: authority.caPem, agent: false },
      (answer) => {
        const socket = answer.socket as import("node:tls").TLSSocket;
        resolve(new Date(socket.getPeerCertificate().valid_to).toISOString());
        answer.resume();
      },
    );
    asked.on("error", reject).end();
  });

beforeAll(async () => {
  authority = await TestAuthority.make();
  writeFileSync(join(folder, "ca.pem"), authority.caPem);
});
afterAll(() => removeHubState(folder));

describe("the admin listener's certificate", () => {
  // A certificate states the end of its validity in whole seconds.
  const began = Math.floor(Date.now() / 1000) * 1000;
  const inDays = (days: number): Date => new Date(began + days * DAY_MS);
  const serve = async (everyMs: number, log = quietLog) =>
    startAdminServer(
      { fetch: () => new Response("ok") },
      { host: "127.0.0.1", port: 0, tls: await openTlsFiles({ certFile, keyFile }, log, everyMs) },
    );

  it("changes soon after its files change; files that do not match change nothing, and are logged once", async () => {
    const lines: string[] = [];
    put(await authority.server(inDays(1)));
    const server = await serve(
      20,
      createLog("info", (line) => lines.push(line)),
    );
    expect(await endOf(server.port)).toBe(inDays(1).toISOString());
    const next = await authority.server(inDays(2));
    writeFileSync(certFile, next.cert);
    const told = () => lines.filter((line) => line.includes("stays in use"));
    await until("the wrong pair is told of", () => told().length > 0 || undefined);
    expect(await endOf(server.port)).toBe(inDays(1).toISOString());
    writeFileSync(keyFile, next.key);
    await until(
      "the new one is served",
      async () => (await endOf(server.port)) === inDays(2).toISOString() || undefined,
    );
    expect(told()).toHaveLength(1);
    expect(lines.join("")).not.toContain("PRIVATE KEY");
    await server.close();
  });

  it("changes at once on SIGHUP", async () => {
    put(await authority.server(inDays(3)));
    const server = await serve(3_600_000);
    put(await authority.server(inDays(4)));
    process.emit("SIGHUP");
    await until(
      "the new one is served",
      async () => (await endOf(server.port)) === inDays(4).toISOString() || undefined,
    );
    await server.close();
  });

  it.each([
    [
      "no file",
      () => put({ cert: "x", key: "x" }),
      { certFile: join(folder, "none") },
      /^MUSTER_HTTP_TLS_CERT: .*ENOENT/,
    ],
    ["no PEM", () => put({ cert: "x", key: "x" }), {}, /are not a certificate and its key/],
  ])("is refused at the start if there is %s", async (_, prepare, other, says) => {
    prepare();
    const opened = openTlsFiles({ certFile, keyFile, ...other }, quietLog);
    await expect(opened).rejects.toThrow(TlsFilesError);
    await expect(opened).rejects.toThrow(says);
  });
});

describe("a hub with a certificate for operators", () => {
  let database: TestDatabase;
  let hub: Child | undefined;
  beforeAll(async () => {
    database = await createTestDatabase();
  });
  afterAll(async () => {
    await hub?.stop();
    await database.drop();
  });
  const start = async (env: Record<string, string>): Promise<Child> =>
    startChild({
      name: "hub",
      script: "hub/main.ts",
      env: {
        DATABASE_URL: database.url,
        MUSTER_STATE_DIR: join(folder, "hub"),
        MUSTER_HTTP_PORT: "0",
        MUSTER_AGENT_HOST: "127.0.0.1",
        MUSTER_AGENT_PORT: String(await freePort()),
        ...env,
      },
      logFile: join(folder, "hub.log"),
    });

  it("answers by TLS, only to a command line that trusts its CA, and a reload closes nothing", async () => {
    put(await authority.server());
    hub = await start({ ...files, MUSTER_HTTP_HOST: "127.0.0.1" });
    const { listening } = (await hub.ready) as { listening: string };
    expect(listening).toMatch(/^https:/);
    const env = { MUSTER_URL: listening, MUSTER_TOKEN_FILE: join(folder, "hub/admin-token") };
    const ask = (...words: string[]) => execa(process.execPath, [CLI, "list-nodes", ...words], { env, reject: false });
    hub.kill("SIGHUP");
    expect(await ask("--ca-file", join(folder, "ca.pem"))).toMatchObject({ exitCode: 0, stderr: "" });
    expect(await ask()).toMatchObject({ exitCode: 3, stdout: "" });
    expect(await ask("--ca-file", keyFile)).toMatchObject({
      exitCode: 2,
      stderr: expect.stringMatching(/no CA certificate/),
    });
    await expect(fetch(listening.replace("https", "http"))).rejects.toThrow();
    await hub.stop();
    expect(readFileSync(join(folder, "hub.log"), "utf8")).not.toContain("PRIVATE KEY");
  });

  it("does not start with unusable files, and names the settings", async () => {
    const child = await start({ ...files, MUSTER_HTTP_TLS_KEY: join(folder, "none") });
    expect(await child.gone).toMatchObject({ code: 78 });
    expect(readFileSync(join(folder, "hub.log"), "utf8")).toMatch(/MUSTER_HTTP_TLS_KEY: .*none could not be read/);
  });
});
