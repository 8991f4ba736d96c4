/** Tasks of an operator, each as the commands that the operator types, on one hub with a simulated MAAS region. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { AdoptionWorld } from "../../support/adoption-world.ts";
import { musterHere } from "../../support/muster-here.ts";
import { addActiveNode } from "../../support/site-nodes.ts";

let world: AdoptionWorld;
let home: string;
let muster: ReturnType<typeof musterHere>;
const file = (name: string, ...lines: string[]): string => {
  writeFileSync(join(home, name), `${lines.join("\n")}\n`);
  return join(home, name);
};
const sql = (text: string, ...values: unknown[]) => world.api.database.database.pool.query(text, values);
/** Types a command that must succeed, and returns what it prints. */
async function typed(line: string | readonly string[]): Promise<string> {
  const { status, stdout, stderr } = await muster(line);
  expect({ line, status, stderr: status === 0 ? "" : stderr }).toEqual({ line, status: 0, stderr: "" });
  return stdout;
}
/** Runs a command that goes on until Ctrl-C, and presses the keys when it has printed `until`. */
async function followed(line: string, until: RegExp): Promise<{ status: number; stdout: string }> {
  const key = new AbortController();
  let stdout = "";
  const out = (text: string): void => {
    stdout += text;
    if (until.test(stdout)) key.abort();
  };
  const env = { HOME: home, MUSTER_TOKEN: world.api.admin };
  const { status } = await musterHere(env, { out, interrupted: () => key.signal })(line);
  return { status, stdout };
}

beforeAll(async () => {
  world = await AdoptionWorld.start();
  home = mkdtempSync(join(tmpdir(), "muster-tasks-"));
  muster = musterHere({ HOME: home, MUSTER_TOKEN: world.api.admin });
  world.deployed("m-1");
  world.deployed("m-2");
  await world.poll();
  await world.api.database.database.inTx(async (tx) => {
    for (const hostname of ["c07u41", "c07u42", "c08u01"]) await addActiveNode(tx, { siteId: world.siteId, hostname });
  });
});
afterAll(async () => {
  rmSync(home, { recursive: true, force: true });
  await world.close();
});

it("1 name the hub once", async () => {
  await typed(["context", "add", "lab", "--url", await world.api.listen()]);
  expect(await typed("context show")).toMatch(/^hub +http\S+ +context lab$/m);
});

it("2 see the versions of both sides", async () => {
  expect(await typed("version")).toMatch(/^muster +\d\S*\nhub +test$/m);
});

it("3 look at the site before work begins", async () => {
  expect(await typed("describe site dc1")).toMatch(/^Credentials that need a person$/m);
});

it("4 plan the adoption of the machines that run already", async () => {
  file("machines.csv", "hostname", "m-1", "m-2");
  expect(await typed(["adopt", "dc1", "--file", join(home, "machines.csv"), "--sku", "sku-dc1", "--plan"])).toMatch(
    /^m-2 .* adopted/m,
  );
});

it("5 adopt them, twice by mistake", async () => {
  const adopt = ["adopt", "dc1", "--file", join(home, "machines.csv"), "--sku", "sku-dc1"];
  expect(await typed(adopt)).toMatch(/^m-1 +\S+ +adopted/m);
  expect(await typed(adopt)).toMatch(/^m-1 +\S+ +exists/m);
});

it("6 find the faulty line of a rack's file", async () => {
  const rack = file("rack.csv", "hostname,ipmi_ip,rack,unit", "n-1,10.0.9.1,r9,1", "n-2,10.0.9.2,r9,0");
  const { status, stderr } = await muster([
    "onboard",
    "--file",
    rack,
    "--site",
    "dc1",
    "--profile",
    "default",
    "--sku",
    "sku-dc1",
  ]);
  expect([status, stderr]).toEqual([2, expect.stringMatching(/rack\.csv:3: unit: /)]);
});

it("7 onboard the rack", async () => {
  const rack = file("rack.csv", "hostname;ipmi_ip;rack;unit", "n-1;10.0.9.1;r9;1", "n-2;10.0.9.2;r9;2");
  expect(await typed(["onboard", "--file", rack, "--site", "dc1", "--profile", "default", "--sku", "sku-dc1"])).toMatch(
    /^onboarding\/n-1 /,
  );
});

it("8 import the RoCE addresses of the rack", async () => {
  const rows = file("roce.csv", "hostname,interface,ipv4_cidr", "n-1,ens1np0,172.30.9.0/31");
  expect(await typed(["roce", "import", "dc1", "--file", rows])).toMatch(/^created +1$/m);
});

it("9 see the rack's nodes, and only the facts of interest", async () => {
  const columns = "hostname,status,sku_id";
  expect(await typed(["get", "nodes", "--hostname-prefix", "c07", "--columns", columns, "--no-headers"])).toBe(
    "c07u41  active  s\nc07u42  active  s\n",
  );
});

it("10 give the fleet to a program for tables", async () => {
  writeFileSync(join(home, "fleet.csv"), await typed("get nodes --all -o csv"));
  expect(readFileSync(join(home, "fleet.csv"), "utf8").trim().split("\r\n")).toHaveLength(6);
});

it("11 find a host by a part of its name", async () => {
  expect(await typed("get nodes --search u42 -o name")).toBe("node/c07u42\n");
});

it("12 see which onboardings failed and why", async () => {
  await sql(
    `update workflows w set status = 'failed_retryable', failure_class = 'upstream_transient', failure_code = 'maas_unreachable',
     failure_message = 'MAAS is away', next_action = 'Start MAAS.'
     from node_onboardings o where o.onboarding_id = w.id and o.hostname = 'n-1'`,
  );
  expect(await typed("get onboardings --status failed --columns hostname,failure_class --no-headers")).toBe(
    "n-1  upstream_transient\n",
  );
});

it("13 read what to do about it", async () => {
  expect(await typed("describe onboarding n-1")).toMatch(/^What to do\n {2}\S.*Start MAAS\./m);
});

it("14 let it run again, and cancel another one", async () => {
  expect(await typed(["retry", "onboarding", "n-1", "--reason", "MAAS is back"])).toMatch(
    /^onboarding\/n-1 {2}retry {2}/,
  );
  expect(await typed(["cancel", "onboarding", "n-2", "--reason", "wrong rack", "--wait", "--timeout", "60s"])).toMatch(
    /^onboarding\/n-2 {2}cancel {2}[\s\S]*: cancelled/,
  );
  expect(await typed("get onboardings --columns hostname,status --no-headers")).toMatch(/^n-2 +cancelled$/m);
});

it("15 keep tenants off two nodes, and see who did it and why", async () => {
  expect(await typed(["cordon", "nodes", "c07u41", "c07u42", "--reason", "a fan is loud"])).toBe(
    "node/c07u41  cordon  done\nnode/c07u42  cordon  done\n",
  );
  expect(await typed("describe node c07u42")).toMatch(/^ {2}cordon +a fan is loud\n {2}cordoned by +operator:admin$/m);
});

it("16 open them again, of which one name is wrong", async () => {
  const { status, stdout, stderr } = await muster([
    "uncordon",
    "nodes",
    "c07u41",
    "nowhere",
    "c07u42",
    "--reason",
    "a new fan",
  ]);
  expect([status, stdout, stderr]).toEqual([
    8,
    expect.stringMatching(/^(node\/\S+ {2}uncordon {2}done\n){2}$/),
    expect.stringContaining("nowhere: "),
  ]);
});

it("17 wait until a node is in a state", async () => {
  const waiting = muster("wait node c08u01 --for status=quarantined");
  await typed(["quarantine", "node", "c08u01", "--reason", "a smell of smoke"]);
  expect(await waiting).toMatchObject({ status: 0, stdout: expect.stringMatching(/c08u01: quarantined\n$/) });
});

it("18 watch nodes while somebody works on them", async () => {
  const watching = followed(
    "watch nodes --hostname-prefix c07 --columns hostname,cordon_reason --no-headers",
    /c07u41 {2}dust/,
  );
  // The watch begins with the present state, in which the node has no cordon.
  await typed(["cordon", "node", "c07u41", "--reason", "dust"]);
  expect(await watching).toMatchObject({ status: 130, stdout: expect.stringMatching(/^c07u42 +-$/m) });
});

it("19 read what happened to a node, and follow what happens next", async () => {
  expect(await typed("logs node c08u01 --tail 20")).toMatch(/^20\S+Z {2}.*a smell of smoke/m);
  const following = followed("logs node c07u42 --follow", /a new disk/);
  await typed(["cordon", "node", "c07u42", "--reason", "a new disk"]);
  expect((await following).status).toBe(130);
});

it("20 drain a node, and see the work", async () => {
  expect(await typed(["drain", "node", "c07u41", "--reason", "the rack moves"])).toMatch(
    /^node\/c07u41 {2}drain {2}[0-9a-f-]{36}\n$/,
  );
  expect(await typed("get decommissions --columns hostname,mode --no-headers")).toBe("c07u41  drain\n");
  expect(await muster("drain node c07u42")).toMatchObject({ status: 2, stderr: "Needed: --reason.\n" });
});

it("21 find out who did what", async () => {
  expect(await typed("get audit --actor admin --columns action,outcome --no-headers --all")).toMatch(/drain\S* +done/);
});

it("22 tell in a script why a command failed", async () => {
  const viewer = musterHere({ HOME: home, MUSTER_TOKEN: world.api.viewer });
  const ends = [
    await viewer(["cordon", "node", "c07u42", "--reason", "r"]),
    await muster(["cordon", "node", "nowhere", "--reason", "r"]),
    await muster(["drain", "node", "c07u41", "--reason", "again"]),
    await musterHere({ HOME: home, MUSTER_URL: "http://127.0.0.1:1" })("get nodes"),
  ];
  expect(ends.map(({ status }) => status)).toEqual([4, 5, 6, 3]);
});

it("23 keep SKUs, profiles, policies and RoCE rows in a file, and see what a change of the file would do", async () => {
  const lines = (turnover: string, rows = "[]"): string[] => [
    "kind: sku\nid: h200\ngpu_vendor: nvidia\ngpus_total: 8",
    "---",
    `kind: profile\nsite: dc1\nname: gold\nturnover_mode: ${turnover}`,
    "---",
    "kind: policy\nsite: dc1\nmax_deploy_retry_attempts: 2",
    "---",
    `kind: roce\nsite: dc1\nrows: ${rows}`,
  ];
  const path = file("fleet.yaml", ...lines("soft_reset"));
  expect(await typed(["apply", "-f", path, "--dry-run"])).toMatch(/^sku\/h200 would be created$/m);
  expect(await typed("get skus -o name")).toBe("sku/sku-dc1\n");
  expect(await typed(["apply", "-f", path])).toMatch(/^profile\/gold created$/m);
  expect(await typed(["apply", "-f", path])).toBe(
    "sku/h200 unchanged\nprofile/gold unchanged\npolicy/dc1 unchanged\nroce/dc1 unchanged\n",
  );
  file("fleet.yaml", ...lines("reimage", "[{hostname: n-2, interface: ens1np0, ipv4_cidr: 172.30.9.2/31}]"));
  const second = await typed(["apply", "-f", path]);
  expect(second).toContain("profile/gold updated\n  turnover_mode: soft_reset -> reimage\n");
  expect(second).toContain("roce/dc1 updated\n  n-2 ens1np0: - -> 172.30.9.2/31\n");
  const taken = file(
    "taken.yaml",
    "kind: roce\nsite: dc1\nrows:",
    "  - {hostname: n-3, interface: ens1np0, ipv4_cidr: 172.30.9.4/31}",
    "  - {hostname: n-3, interface: ens2np0, ipv4_cidr: 172.30.9.2/31}",
  );
  expect(await muster(["apply", "-f", taken])).toMatchObject({
    status: 8,
    stderr: expect.stringMatching(/^roce\/dc1: 1 of 2 rows written, 1 refused: /),
  });
  const wrong = file("wrong.yaml", "kind: sku\nid: a\ncolour: red");
  expect(await muster(["apply", "-f", wrong])).toMatchObject({
    status: 2,
    stderr: expect.stringContaining("object 1: a sku has no field colour."),
  });
  const refused = file(
    "refused.yaml",
    "kind: sku\nid: b200\ngpu_vendor: nvidia\ngpus_total: 8",
    "---",
    "kind: policy\nsite: dc9\nmax_deploy_retry_attempts: 2",
  );
  expect(await muster(["apply", "-f", refused])).toMatchObject({
    status: 8,
    stdout: expect.stringContaining("sku/b200 created"),
  });
});
