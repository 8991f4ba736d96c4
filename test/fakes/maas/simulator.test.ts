import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { authorization, keyOf } from "./sample-client.ts";
import {
  ALLOCATED,
  BROKEN,
  COMMISSIONING,
  closeAll,
  created,
  DEPLOYED,
  DEPLOYING,
  deployed,
  FAILED_DEPLOYMENT,
  NEW,
  READY,
  RELEASING,
  readied,
  type Shown,
  settled,
  start,
} from "./sample-machines.ts";

const folders: string[] = [];

afterEach(async () => {
  await closeAll();
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

describe("signing", () => {
  test("a nonce is accepted once, an old timestamp never, and a future timestamp always", async () => {
    const { simulator } = await start();
    const key = keyOf(simulator.apiKey);
    const ask = async (header: string): Promise<{ status: number; text: string }> => {
      const response = await fetch(`${simulator.url}/api/2.0/users/?op=whoami`, { headers: { Authorization: header } });
      return { status: response.status, text: await response.text() };
    };
    const once = authorization(key);
    expect((await ask(once)).status).toBe(200);
    expect(await ask(once)).toMatchObject({ status: 401, text: expect.stringContaining("Nonce already used") });
    const now = Math.floor(Date.now() / 1000);
    expect(await ask(authorization(key, { timestamp: now - 301 }))).toMatchObject({
      status: 401,
      text: expect.stringContaining("threshold 300"),
    });
    expect((await ask(authorization(key, { timestamp: now + 3600 }))).status).toBe(200);
  });

  test("a path without its trailing slash is unknown", async () => {
    const { client } = await start();
    expect(await client.call("GET", "machines")).toMatchObject({
      status: 404,
      text: "Unknown API endpoint: /MAAS/api/2.0/machines.",
    });
  });
});

describe("a machine's life", () => {
  test("the region knows only the BMC of a box until it is commissioned", async () => {
    const { client } = await start();
    const id = await created(client);
    const before = await client.get<Shown>("GET", `machines/${id}/`);
    expect(before).toMatchObject({
      status: NEW,
      interface_set: [],
      physicalblockdevice_set: [],
      hardware_uuid: null,
      cpu_count: 0,
    });
    await client.get("POST", `machines/${id}/?op=commission`, { testing_scripts: "none" });
    const after = await settled(client, id);
    expect(after).toMatchObject({
      status: READY,
      owner: null,
      cpu_count: 256,
      memory: 2 * 1024 * 1024,
      power_state: "off",
    });
    expect(after["physicalblockdevice_set"]).toHaveLength(9);
    const nics = after["interface_set"] as {
      name: string;
      vlan: { id: number; vid: number };
      links: { mode: string }[];
    }[];
    expect(nics.map((nic) => nic.links[0]?.mode)).toEqual([...Array.from({ length: 8 }, () => "link_up"), "auto"]);
    expect(new Set(nics.map((nic) => nic.vlan.id)).size).toBe(9);
  });

  test("a RoCE interface takes a /31 on its own VLAN once, and a second link is refused as in use", async () => {
    const { client } = await start();
    const id = await readied(client);
    const nics = await client.get<{ id: number; name: string; vlan: { id: number } }[]>(
      "GET",
      `nodes/${id}/interfaces/`,
    );
    const nic = nics.find((one) => one.name === "enp28s0np0");
    const subnet = await client.get<{ id: number }>("POST", "subnets/", {
      cidr: "10.90.0.0/31",
      vlan: String(nic?.vlan.id),
      managed: "false",
    });
    const form = { mode: "STATIC", subnet: String(subnet.id), ip_address: "10.90.0.1" };
    const linked = await client.get<{ links: { mode: string; ip_address: string }[] }>(
      "POST",
      `nodes/${id}/interfaces/${nic?.id}/?op=link_subnet`,
      form,
    );
    expect(linked.links).toMatchObject([{ mode: "static", ip_address: "10.90.0.1" }]);
    expect(await client.call("POST", `nodes/${id}/interfaces/${nic?.id}/?op=link_subnet`, form)).toMatchObject({
      status: 404,
      text: "IP address is already in use.",
    });
    const other = nics.find((one) => one.name === "enp29s0np0");
    expect(
      await client.call("POST", `nodes/${id}/interfaces/${other?.id}/?op=link_subnet`, {
        ...form,
        ip_address: "10.90.0.0",
      }),
    ).toMatchObject({ status: 400, text: `{"subnet":["None found with id=${subnet.id}.","This field is required."]}` });
  });

  test("an abort answers with the old status and changes the status later", async () => {
    const { client } = await start();
    const id = await created(client);
    await client.get("POST", `machines/${id}/?op=commission`);
    expect(await client.get<Shown>("POST", `machines/${id}/?op=abort`)).toMatchObject({ status: COMMISSIONING });
    expect(await settled(client, id)).toMatchObject({ status: NEW, owner: null });
  });

  test("an aborted deploy leaves the machine with its owner", async () => {
    const { client } = await start();
    const id = await readied(client);
    await client.get("POST", `machines/${id}/?op=deploy`);
    expect(await client.get<Shown>("POST", `machines/${id}/?op=abort`)).toMatchObject({ status: DEPLOYING });
    expect(await settled(client, id)).toMatchObject({ status: ALLOCATED, owner: "admin" });
  });

  test("a release ends at Ready after a passed commissioning and at New without one", async () => {
    const { client } = await start();
    const passed = await deployed(client, 1);
    expect(await client.get<Shown>("POST", `machines/${passed}/?op=release`)).toMatchObject({ status: RELEASING });
    expect(await settled(client, passed)).toMatchObject({ status: READY, owner: null });
    const never = await created(client, 2);
    await client.control("POST", `machines/${never}/force-status`, { status: "deployed", owner: "admin" });
    await client.get("POST", `machines/${never}/?op=release`);
    expect(await settled(client, never)).toMatchObject({ status: NEW, owner: null });
  });

  test("the machine's token exists from Deploying on and is removed with its owner", async () => {
    const { client } = await start();
    const id = await readied(client);
    const token = (): Promise<{ token_key: string } | null> => client.get("GET", `machines/${id}/?op=get_token`);
    expect(await token()).toBeNull();
    await client.get("POST", `machines/${id}/?op=deploy`);
    const first = await token();
    expect(first?.token_key).toMatch(/^\w{18}$/);
    await settled(client, id);
    expect(await token()).toEqual(first);
    await client.get("POST", `machines/${id}/?op=release`);
    await settled(client, id);
    expect(await token()).toBeNull();
    await client.get("POST", `machines/${id}/?op=deploy`);
    expect(await token()).not.toEqual(first);
  });

  test("the sync time starts at Deployed without a sync, and a release clears it", async () => {
    const { client } = await start();
    const id = await deployed(client, 1, { enable_hw_sync: "true" });
    const machine = await client.get<Shown>("GET", `machines/${id}/`);
    expect(machine).toMatchObject({ enable_hw_sync: true, sync_interval: 900 });
    const [last, next] = [
      Date.parse(`${String(machine["last_sync"])}Z`),
      Date.parse(`${String(machine["next_sync"])}Z`),
    ];
    expect(next - last).toBe(900_000);
    await client.get("POST", `machines/${id}/?op=release`);
    expect(await settled(client, id)).toMatchObject({
      enable_hw_sync: false,
      sync_interval: null,
      last_sync: null,
      next_sync: null,
    });
  });

  test("a locked machine answers 403 with an empty body, but can be read and unlocked", async () => {
    const { client } = await start();
    const id = await deployed(client);
    await client.get("POST", `machines/${id}/?op=lock`);
    for (const [method, path] of [
      ["POST", "?op=release"],
      ["PUT", ""],
      ["DELETE", ""],
    ] as const) {
      expect(await client.call(method, `machines/${id}/${path}`)).toMatchObject({ status: 403, text: "" });
    }
    expect(await client.get<Shown>("GET", `machines/${id}/`)).toMatchObject({ locked: true });
    expect(await client.get<Shown>("POST", `machines/${id}/?op=unlock`)).toMatchObject({ locked: false });
  });

  test("an unknown filter is ignored, a wrong value of a known filter is refused", async () => {
    const { client } = await start();
    await created(client, 1);
    await created(client, 2);
    expect(await client.get<Shown[]>("GET", "machines/?hostnme=gpu1")).toHaveLength(2);
    expect(await client.get<Shown[]>("GET", "machines/?hostname=gpu1")).toHaveLength(1);
    expect((await client.call("GET", "machines/?status=nosuch")).status).toBe(400);
  });
});

describe("failures", () => {
  test("wrong BMC credentials fail a commission and leave the machine's status and owner", async () => {
    const { client } = await start();
    const id = await created(client, 1, { power_parameters_power_pass: "wrong" });
    const answer = await client.call("POST", `machines/${id}/?op=commission`);
    expect(answer).toMatchObject({ status: 500, text: expect.stringContaining("Incorrect password") });
    expect(await client.get<Shown>("GET", `machines/${id}/`)).toMatchObject({
      status: NEW,
      owner: null,
      power_state: "error",
    });
    expect(await client.get("GET", `machines/${id}/?op=query_power_state`)).toEqual({ state: "error" });
  });

  test("a dead BMC fails the deploy call on 3.5 and the deployment on 3.7", async () => {
    for (const version of ["3.5.12", "3.7.3"] as const) {
      const { client } = await start({ version });
      const id = await readied(client);
      await client.control("POST", "hardware/box-01", { bmcReachable: false });
      const answer = await client.call("POST", `machines/${id}/?op=deploy`);
      expect(answer.status).toBe(version === "3.5.12" ? 500 : 200);
      const after = await settled(client, id);
      if (version === "3.5.12") expect(after).toMatchObject({ status: ALLOCATED, owner: "admin" });
      else
        expect(after).toMatchObject({
          status: FAILED_DEPLOYMENT,
          error_description: expect.stringContaining("Connection timed out"),
        });
    }
  });

  test("planned outcomes come in order: datasource failure, installation failure, pass", async () => {
    const { client } = await start();
    const id = await readied(client);
    await client.control("POST", `machines/${id}/outcomes`, { deploy: ["datasource_failure", "install_failure"] });
    const attempt = async (): Promise<Shown> => {
      await client.get("POST", `machines/${id}/?op=deploy`);
      return settled(client, id);
    };
    const release = async (): Promise<Shown> => {
      await client.get("POST", `machines/${id}/?op=release`);
      return settled(client, id);
    };
    expect(await attempt()).toMatchObject({
      status: FAILED_DEPLOYMENT,
      error_description: "time-out during deployment",
    });
    await release();
    expect(await attempt()).toMatchObject({
      status: FAILED_DEPLOYMENT,
      error_description: expect.stringContaining("Installation failed"),
    });
    await release();
    expect(await attempt()).toMatchObject({ status: DEPLOYED });
    const { machines } = await client.control<{ machines: Record<string, unknown> }>("GET", "counters");
    expect(machines[id]).toMatchObject({ commission: 1, deploy: 3, release: 2 });
  });

  test("a deployed machine returns from Broken to Deployed", async () => {
    const { client } = await start();
    const id = await deployed(client);
    expect(await client.get<Shown>("POST", `machines/${id}/?op=mark_broken`, { comment: "fan" })).toMatchObject({
      status: BROKEN,
      error_description: "fan",
    });
    expect(await client.get<Shown>("POST", `machines/${id}/?op=mark_fixed`)).toMatchObject({
      status: DEPLOYED,
      osystem: "",
    });
  });

  test("a fault affects the requests that it matches, as many times as it says", async () => {
    const { client } = await start();
    const id = await created(client);
    await client.control("POST", "faults", {
      match: { op: "commission" },
      kind: "conflict_html_retry_after",
      times: 1,
    });
    const conflict = await client.call("POST", `machines/${id}/?op=commission`);
    expect(conflict.status).toBe(409);
    expect(conflict.headers.get("retry-after")).toBe("5");
    expect(conflict.headers.get("content-type")).toContain("text/html");
    await client.control("POST", "faults", { match: { method: "GET", system_id: id }, kind: "truncated_body" });
    await expect(client.call("GET", `machines/${id}/`)).rejects.toThrow();
    await client.control("POST", "faults", { match: { op: "query_power_state" }, kind: "no_rack_503" });
    expect((await client.call("GET", `machines/${id}/?op=query_power_state`)).status).toBe(503);
    expect((await client.call("POST", `machines/${id}/?op=commission`)).status).toBe(200);
  });

  test("a call whose answer got lost was carried out", async () => {
    const { simulator, client } = await start();
    const id = await readied(client);
    await client.control("POST", "faults", { match: { op: "deploy" }, kind: "timeout_after_accept" });
    const lost = fetch(`${simulator.url}/api/2.0/machines/${id}/?op=deploy`, {
      method: "POST",
      headers: { Authorization: authorization(keyOf(simulator.apiKey)) },
      signal: AbortSignal.timeout(300),
    });
    await expect(lost).rejects.toThrow();
    expect(await client.get<Shown>("GET", `machines/${id}/`)).toMatchObject({ status: DEPLOYING });
  });
});

test("a restart with the same state file continues, including waiting jobs", async () => {
  const folder = mkdtempSync(join(tmpdir(), "simulated-region-"));
  folders.push(folder);
  const stateFile = join(folder, "state.json");
  const first = await start({ stateFile });
  const id = await readied(first.client);
  await first.client.get("POST", `machines/${id}/?op=deploy`);
  await first.simulator.close();
  const second = await start({ stateFile });
  expect(await second.client.get<Shown>("GET", `machines/${id}/`)).toMatchObject({ status: DEPLOYING });
  expect(await settled(second.client, id)).toMatchObject({ status: DEPLOYED });
  const { machines } = await second.client.control<{ machines: Record<string, unknown> }>("GET", "counters");
  expect(machines[id]).toMatchObject({ commission: 1, deploy: 1 });
});
