/** Runs every command that docs/adoption.md shows, in its order, on a site whose machines run. */
import { randomUUID } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import { afterAll, beforeAll, expect, it } from "vitest";
import { parseDocument } from "yaml";
import { NodeId } from "../../../shared/ids.ts";
import { AdoptionWorld } from "../../support/adoption-world.ts";
import { COMMANDS, REPOSITORY } from "../../support/documents.ts";
import { GatewayRig } from "../../support/gateway-rig.ts";
import { enrollHost, inventoryOf, macOf, tellHealthy, tokenIn } from "../../support/running-host.ts";
import { until } from "../../support/until.ts";

const SHOWN = COMMANDS.filter(({ file, command }) => file === "docs/adoption.md" && command.startsWith("npm run"));

let world: AdoptionWorld;
let rig: GatewayRig | undefined;
let url: string;
let folder: string;
beforeAll(async () => {
  world = await AdoptionWorld.start();
  await world.api.ask("POST", "/api/v1/admin/skus", { id: "h100", gpu_vendor: "nvidia", gpus_total: 8 });
  world.deployed("c09u41", (one) => void Object.assign(one, { tags: ["gpu"] }));
  world.deployed("c09u42", (one) => void Object.assign(one, { enableHwSync: false }));
  await manualNode("c09u43", "4y3h7n");
  url = await world.api.listen();
  folder = mkdtempSync(join(tmpdir(), "muster-adoption-"));
});
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  await rig?.listener.close();
  await world?.close();
});

/** A node of manual mode whose host is the given machine, with the agent connected. */
async function manualNode(hostname: string, systemId: string): Promise<void> {
  const machine = world.deployed(hostname, (one) => void Object.assign(one, { systemId }));
  await world.poll();
  rig = await GatewayRig.start({}, world.api.database);
  const body = { onboarding_mode: "manual", hostname, sku_id: "h100", region_code: "r1", site_id: world.siteId };
  const created = (await world.api.ask("POST", "/api/v1/admin/nodes", body)).body;
  const id = NodeId.parse(created.node_id);
  const [token, macs, bootId] = [tokenIn(created.bootstrap_command), [macOf(machine)], randomUUID()];
  const { agent } = await enrollHost(rig, { id, token, macs, bootId });
  if (agent === null) throw new Error("not enrolled");
  agent.send({
    type: "inventory",
    inventory: inventoryOf({ bootId, uuid: machine.hardwareUuid ?? "", macs, gpus: 0 }),
  });
  tellHealthy(agent, (await world.node(id)).generation, bootId);
  await until("the node to be in service with its inventory", async () => {
    const node = await world.node(id);
    return node.status === "active" && node.inventory !== null ? true : undefined;
  });
}

const run = (command: string) =>
  execa(
    "bash",
    ["-euc", `npm() { while [ "$1" != muster ]; do shift; done; shift 2; "$TEST_NODE" "$TEST_CLI" "$@"; }\n${command}`],
    {
      cwd: folder,
      reject: false,
      stdin: "ignore",
      env: {
        MUSTER_URL: url,
        MUSTER_TOKEN: world.api.admin,
        TEST_NODE: process.execPath,
        TEST_CLI: join(REPOSITORY, "hub/cli/main.ts"),
      },
    },
  );

/** What an operator sees after a documented command, by a part of the command. */
const SEEN: Readonly<Record<string, RegExp>> = {
  "unbind-node-machine": /onboarding_mode +manual/,
  "bind-node-machine c09u43": /outcome +bound/,
  "--plan true": /c09u41 .*adopted/,
  "--expected-count 1": /adopted +1\n/,
  '["c09u42"]': /hardware_sync_off/,
  "create-adoption-commands": /c09u41 [\s\S]*printf %s/,
  "create-bootstrap-command": /bootstrap_command +printf %s/,
  "decommission-node": /decommission_id/,
};

it("each command works as the page says", async () => {
  expect(SHOWN.length).toBe(11);
  for (const { command } of SHOWN) {
    if (command.includes("create-adoption-csv") || command.includes("create-adoption-inventory"))
      await world.api.database.database.pool.query("update enrollment_tokens set revoked_at = now()");
    if (command.includes("decommission-node"))
      await world.api.database.database.pool.query("update nodes set status = 'active' where hostname = 'c09u42'");
    const { exitCode, stdout, stderr } = await run(command);
    expect({ command, exitCode, stderr }).toEqual({ command, exitCode: 0, stderr: "" });
    const seen = Object.entries(SEEN).find(([part]) => command.includes(part))?.[1];
    if (seen !== undefined) expect(stdout, command).toMatch(seen);
  }
  const csv = readFileSync(join(folder, "commands.csv"), "utf8");
  expect(csv).toMatch(/^hostname,address,maas_system_id,node_id,expires_at,command\r\nc09u4[12],10[.]99[.]0[.]\d,/);
  const tag = { tag: "!unsafe", resolve: (text: string) => text };
  const inventory = parseDocument(readFileSync(join(folder, "hosts.yml"), "utf8"), { customTags: [tag] }).toJS();
  expect(Object.keys(inventory.all.children.muster_adoption.hosts).toSorted()).toEqual(["c09u41", "c09u42"]);
});

it("a refused machine ends the command with status 1 and its reason", async () => {
  const { exitCode, stdout, stderr } = await run(
    `npm run muster -- adopt-machines dc1 --sku-id h100 --hostnames '["nowhere"]'`,
  );
  expect(exitCode).toBe(1);
  expect(stdout).toContain("machine_unknown");
  expect(stderr).toContain("refused: 1");
});
