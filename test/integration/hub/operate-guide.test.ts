/** Runs the commands of docs/operate.md, in their order, on a hub with its embedded database. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { execa } from "execa";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Child } from "../../support/child.ts";
import { COMMANDS, REPOSITORY } from "../../support/documents.ts";
import { HubApi } from "../../support/hub-api.ts";
import { freeHubPorts, type HubPorts, startHubProcess } from "../../support/hub-process.ts";
import { newHubFolder, removeHubState } from "../../support/hub-state.ts";
import { ensureSku } from "../../support/seed-site.ts";

const GUIDE = COMMANDS.filter(
  ({ file, command }) => file === "docs/operate.md" && !/^(systemd-run|npm run -s muster) /.test(command),
).map(({ command }) => command);
const folder = newHubFolder("muster-operate-");
const state = join(folder, ".muster/hub");
let ports: HubPorts;
let hub: Child;

beforeAll(async () => {
  ports = await freeHubPorts();
  mkdirSync(join(folder, "safe"));
});
afterAll(async () => {
  await hub?.stop();
  removeHubState(folder);
});

/** In the shell of the test, `npm run hub` is the hub's program of the repository, and the folder /safe is a folder of the test. */
async function typed(command: string): Promise<{ exitCode: number | undefined; told: string }> {
  const [made = ""] = existsSync(join(folder, "backups")) ? readdirSync(join(folder, "backups")) : [];
  const { exitCode, all } = await execa(
    "bash",
    [
      "-euc",
      `npm() { shift 3; "$TEST_NODE" "$TEST_HUB" "$@"; }
       ${command.replaceAll("/safe/", "safe/").replaceAll(/muster-backup-\d{8}T\d{6}Z/g, made)}`,
    ],
    {
      cwd: folder,
      reject: false,
      all: true,
      stdin: "ignore",
      env: { TEST_NODE: process.execPath, TEST_HUB: join(REPOSITORY, "hub/main.ts") },
    },
  );
  return { exitCode, told: all };
}

const startHub = async (): Promise<HubApi> => {
  const env = { MUSTER_STATE_DIR: state };
  hub = startHubProcess({ databaseUrl: "", stateDir: state, ports, env, logFile: join(folder, "hub.log") });
  await hub.ready;
  return new HubApi(`http://127.0.0.1:${ports.http}`, readFileSync(join(state, "admin-token"), "utf8").trim());
};
const authorityOf = async (api: HubApi): Promise<string> =>
  (
    await fetch(new URL("/api/v1/admin/authority", api.url), { headers: { authorization: `Bearer ${tokenNow()}` } })
  ).text();
const tokenNow = (): string => readFileSync(join(state, "admin-token"), "utf8").trim();

describe("the guide", { timeout: 300_000 }, () => {
  it("backs a running hub up, and brings it back after the loss of its database and its sealed files", async () => {
    const [keep = "", makeFolder = "", backup = "", makeStore = "", putKey = "", restore = "", ...more] = GUIDE;
    expect(more).toEqual([]);
    const before = await startHub();
    await ensureSku(before, { id: "h200", description: "", gpu_vendor: "nvidia", gpu_model: "H200", gpus_total: 8 });
    const [authority, token] = [await authorityOf(before), tokenNow()];
    for (const command of [keep, makeFolder, backup]) expect(await typed(command)).toMatchObject({ exitCode: 0 });
    expect(await typed(restore)).toMatchObject({
      exitCode: 1,
      told: expect.stringContaining("A hub runs on this database"),
    });
    await ensureSku(before, { id: "since", description: "", gpu_vendor: "nvidia", gpu_model: "H200", gpus_total: 8 });
    await hub.stop();

    for (const lost of ["postgres", "secrets"]) rmSync(join(state, lost), { recursive: true });
    for (const command of [makeStore, putKey, restore]) expect(await typed(command)).toMatchObject({ exitCode: 0 });
    const after = await startHub();
    expect((await after.skus()).map(({ id }) => id)).toEqual(["h200"]);
    expect([await authorityOf(after), tokenNow()]).toEqual([authority, token]);
  });
});
