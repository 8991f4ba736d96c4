/** Types the verbs that take hosts and rows from files, against a hub: onboard, adopt and roce import. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AdoptionWorld } from "../../support/adoption-world.ts";
import { answering, json } from "../../support/answering.ts";
import { musterHere } from "../../support/muster-here.ts";
import { until } from "../../support/until.ts";

let world: AdoptionWorld;
let folder: string;
let muster: ReturnType<typeof musterHere>;
const file = (name: string, ...lines: string[]): string => {
  writeFileSync(join(folder, name), `${lines.join("\n")}\n`);
  return join(folder, name);
};
const count = async (table: string): Promise<number> =>
  Number((await world.api.database.database.pool.query(`select count(*) as n from ${table}`)).rows[0]?.n);

beforeAll(async () => {
  world = await AdoptionWorld.start();
  folder = mkdtempSync(join(tmpdir(), "muster-imports-"));
  muster = musterHere({ MUSTER_URL: await world.api.listen(), MUSTER_TOKEN: world.api.admin, HOME: folder });
});
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  await world.close();
});

describe("onboard", () => {
  const where = ["--site", "dc1", "--profile", "default", "--sku", "sku-dc1"];

  it("sends nothing if a row of the file has a fault", async () => {
    const hosts = file("faulty.csv", "hostname,ipmi_ip", "a-1,10.0.1.1", "a-2,nowhere");
    const { status, stdout, stderr } = await muster(["onboard", "--file", hosts, ...where]);
    expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
    expect(stderr).toMatch(/faulty\.csv:3: ipmi_ip: .*\n1 faults, so nothing was sent\..*--skip-invalid/);
    expect(await count("node_onboardings")).toBe(0);
  });

  it("sends the good rows if the operator says so, and then ends with the status of a part", async () => {
    const hosts = file("partly.csv", "hostname;ipmi_ip;rack", "a-1;10.0.1.1;r7", "a-2;nowhere;r7");
    const { status, stdout, stderr } = await muster(["onboard", "--file", hosts, ...where, "--skip-invalid"]);
    expect(status).toBe(8);
    expect(stdout).toMatch(/^onboarding\/a-1 {2}[0-9a-f-]{36}\n$/);
    expect(stderr).toMatch(/1 rows checked, 1 faults left out\.\nBatch [0-9a-f-]{36}: 1 hosts ordered\.\n$/);
  });

  it("goes on where it ended if the same file is sent again, and orders a new batch only on request", async () => {
    const hosts = file("again.csv", "hostname,ipmi_ip", "b-1,10.0.2.1", "b-2,10.0.2.2");
    const first = await muster(["onboard", "--file", hosts, ...where]);
    expect(first.status).toBe(0);
    expect(await muster(["onboard", "--file", hosts, ...where])).toEqual(first);
    const again = await muster(["onboard", "--file", hosts, ...where, "--new"]);
    expect(again).toMatchObject({ status: 6, stderr: expect.stringContaining("onboarding_exists (409)") });
  });

  it("takes hosts from the command line, and waits with a line for each change of a host", async () => {
    const waiting = answering(
      (url) => url.searchParams.has("batch_id"),
      (times) => (times === 1 ? json({ title: "Starting", code: "starting", status: 503 }, 503) : undefined),
      () => muster(["onboard", "c-1=10.0.3.1", "c-2=10.0.3.2", ...where, "--wait"]),
    );
    const { pool } = world.api.database.database;
    const end = (hostname: string, status: string) =>
      pool.query(
        `with ended as (update workflows w set status = $2 from node_onboardings o where o.onboarding_id = w.id and o.hostname = $1 returning w.id)
         select id from ended`,
        [hostname, status],
      );
    for (const [hostname, status] of [
      ["c-1", "completed"],
      ["c-2", "failed_manual_intervention"],
    ] as const)
      await until(`the onboarding of ${hostname}`, async () => (await end(hostname, status)).rowCount || undefined);
    const { status, stdout, stderr } = (await waiting).result;
    expect(status).toBe(8);
    expect(stderr).toMatch(/^Trying again, because a reading failed: /m);
    expect(stdout).toMatch(/^c-1: completed/m);
    expect(stdout).toMatch(/^c-2: failed_manual_intervention/m);
    expect(stderr).toMatch(/^2 of 2 hosts done, 1 of them not in service\.$/m);
  });

  it("ends with the status of a part if the second batch is refused or the connection is lost", async () => {
    const lines = Array.from({ length: 1_001 }, (_, at) => `d-${at},10.1.${at >> 8}.${at & 255}`);
    const hosts = file("many.csv", "hostname,ipmi_ip", ...lines);
    for (const second of [json({ title: "Refused", code: "breaker_open", status: 409 }, 409), null]) {
      const { result, asked } = await answering(
        (url, method) => method === "POST" && url.pathname.endsWith("/onboardings/batch"),
        (times) => (times === 1 ? json({ batch_id: "batch-1", onboardings: [] }, 201) : second),
        () => muster(["onboard", "--file", hosts, ...where]),
      );
      expect([result.status, asked]).toEqual([8, 2]);
      expect(result.stderr).toMatch(/Batch batch-1: 1000 hosts ordered\.\nNumbers 1001 to 1001 of the good rows: /);
    }
  });

  it("says what is missing", async () => {
    expect(await muster("onboard --site dc1")).toMatchObject({
      status: 2,
      stderr: expect.stringContaining("or a file by --file"),
    });
    expect(await muster("onboard a=10.0.0.1 --site dc1")).toMatchObject({
      status: 2,
      stderr: "--profile is needed.\n",
    });
    expect(await muster(["onboard", "--file", "nowhere.csv", ...where])).toMatchObject({ status: 2 });
    const elsewhere = await muster("onboard a=10.0.0.1 --site dc9 --profile default --sku x");
    expect(elsewhere).toMatchObject({ status: 5, stderr: expect.stringContaining("--site: name dc9 is in no item") });
  });
});

describe("roce import", () => {
  it("writes the rows, and tells what became of them", async () => {
    const rows = file(
      "roce.csv",
      "hostname,interface,ipv4_cidr",
      "a-1,ens1np0,172.30.0.1/31",
      "a-1,ens2np0,172.30.0.3/31",
    );
    const dry = await muster(["roce", "import", "dc1", "--file", rows, "--dry-run"]);
    expect(dry).toMatchObject({ status: 0, stdout: "" });
    expect(await count("maas_roce_assignments")).toBe(0);
    const { status, stdout, stderr } = await muster(["roce", "import", "dc1", "--file", rows]);
    expect({ status, stdout }).toEqual({
      status: 0,
      stdout: "created    2\nupdated    0\nunchanged  0\nfailed     0\n",
    });
    expect(stderr).toMatch(/roce\.csv: 2 rows checked\.\n2 of 2 rows sent\.\n$/);
    expect((await muster(["roce", "import", "dc1", "--file", rows])).stdout).toContain("unchanged  2");
    expect((await muster("get roce --site dc1 -o name")).stdout).toBe("roce-row/a-1\nroce-row/a-1\n");
  });

  it("ends with the status of a part if the connection is lost after the first part", async () => {
    const lines = Array.from({ length: 501 }, (_, at) => `h-${at},ens1np0,172.31.${at >> 7}.${(at & 127) * 2}/31`);
    const rows = file("many-rows.csv", "hostname,interface,ipv4_cidr", ...lines);
    const items = Array.from({ length: 500 }, (_, index) => ({ index, outcome: "created", message: null }));
    const { result } = await answering(
      (url, method) => method !== "GET" && url.pathname.includes("roce"),
      (times) => (times === 1 ? json({ items, failed: 0 }) : null),
      () => muster(["roce", "import", "dc1", "--file", rows]),
    );
    expect(result).toMatchObject({ status: 8, stdout: expect.stringMatching(/^created +500$/m) });
    expect(result.stderr).toContain("Numbers 501 to 501 of the good rows: The hub at");
  });

  it("names the line of a row that the hub refuses", async () => {
    const rows = file(
      "taken.csv",
      "hostname,interface,ipv4_cidr",
      "z-9,ens1np0,172.30.9.1/31",
      "z-9,ens2np0,172.30.0.1/31",
    );
    const { status, stdout, stderr } = await muster(["roce", "import", "dc1", "--file", rows]);
    expect({ status, stdout }).toMatchObject({
      status: 8,
      stdout: expect.stringMatching(/created +1[\s\S]*failed +1/),
    });
    expect(stderr).toMatch(/taken\.csv:3: /);
  });
});

describe("adopt", () => {
  it("adopts the machines of a file, says why it refuses others, and plans before", async () => {
    world.deployed("m-1");
    world.deployed("m-2");
    await world.poll();
    const machines = file("machines.csv", "hostname", "m-1", "m-9");
    const adopt = ["adopt", "dc1", "--file", machines, "--sku", "sku-dc1"];
    const before = await count("nodes");
    const plan = await muster([...adopt, "--plan"]);
    expect(plan).toMatchObject({ status: 8, stdout: expect.stringMatching(/^m-1 +\S+ +adopted/m) });
    expect(await count("nodes")).toBe(before);
    const { status, stdout } = await muster(adopt);
    expect(status).toBe(8);
    expect(stdout).toMatch(/^m-9 +- +refused +machine_unknown: /m);
    expect(await count("nodes")).toBe(before + 1);
    expect(await muster("adopt dc1 m-1 m-2 --sku sku-dc1")).toMatchObject({
      status: 0,
      stdout: expect.stringMatching(/^m-1 +\S+ +exists[\s\S]*^m-2 +\S+ +adopted/m),
    });
    expect(await muster("adopt dc1 nowhere --sku sku-dc1")).toMatchObject({ status: 6 });
    expect(await muster("adopt dc1 m-1")).toMatchObject({ status: 2, stderr: "--sku is needed.\n" });
  });
});
