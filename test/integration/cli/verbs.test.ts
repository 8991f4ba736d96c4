/** Types verbs of the program `muster` against a hub: get, describe, wait and version. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { followEvents } from "../../../hub/cli/events.ts";
import { Hub } from "../../../hub/cli/hub.ts";
import { processIo } from "../../../hub/cli/io.ts";
import { NodeId, SiteId } from "../../../shared/ids.ts";
import { answering, json } from "../../support/answering.ts";
import { type ApiHarness, seedApi, siteBody, startApi } from "../../support/api-harness.ts";
import { musterHere } from "../../support/muster-here.ts";
import { addActiveNode, retireNode } from "../../support/site-nodes.ts";
import { until } from "../../support/until.ts";

let api: ApiHarness;
let folder: string;
let env: Record<string, string>;
let muster: ReturnType<typeof musterHere>;
let ids: Record<string, string>;

const verb = (hostname: string, name: string, reason: string) =>
  api.ask("POST", `/api/v1/admin/nodes/${ids[hostname]}/${name}`, { reason });

beforeAll(async () => {
  api = await startApi();
  folder = mkdtempSync(join(tmpdir(), "muster-verbs-"));
  env = { MUSTER_URL: await api.listen(), MUSTER_TOKEN: api.admin, HOME: folder };
  muster = musterHere(env);
  const { siteId, profileId, skuId } = await seedApi(api);
  ids = {};
  await api.database.database.inTx(async (tx) => {
    for (const hostname of ["c07u41", "c07u42", "c08u01"])
      ids[hostname] = await addActiveNode(tx, { siteId: SiteId.parse(siteId), hostname });
  });
  const location = { room: "A", rack: "r7", unit: 41 };
  const { headers } = await api.ask("GET", `/api/v1/admin/nodes/${ids["c07u41"]}`);
  const version = { "if-match": headers.get("etag") ?? "" };
  await api.ask("PATCH", `/api/v1/admin/nodes/${ids["c07u41"]}`, { location }, version);
  const host = { site_id: siteId, profile_id: profileId, sku_id: skuId };
  await api.ask("POST", "/api/v1/admin/onboardings", { ...host, hostname: "new-1", ipmi_ip: "10.0.0.1" });
});
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  await api.close();
});

describe("get", () => {
  it("lists nodes by filters, with the names of sites and one line for each node", async () => {
    const { status, stdout, stderr } = await muster("get nodes --hostname-prefix c07 --site dc1");
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    const [heads, ...lines] = stdout.trim().split("\n");
    expect(heads).toMatch(/^HOSTNAME +STATUS +SCHEDULABLE +SITE +RACK +SKU +TENANT +AGENT$/);
    expect(lines.map((line) => line.split(/ +/).slice(0, 4))).toEqual([
      ["c07u41", "active", "false", "dc1"],
      ["c07u42", "active", "false", "dc1"],
    ]);
  });

  it("shows objects by name, and takes nouns in the singular and short", async () => {
    const one = await muster("get node c08u01 -o name");
    expect(one).toEqual({ status: 0, stdout: "node/c08u01\n", stderr: "" });
    const two = await muster([
      "get",
      "no",
      "c08u01",
      ids["c07u41"] ?? "",
      "-o",
      "csv",
      "--columns",
      "hostname,location.rack,id",
    ]);
    expect(two.stdout).toBe(`hostname,location.rack,id\r\nc08u01,,${ids["c08u01"]}\r\nc07u41,r7,${ids["c07u41"]}\r\n`);
  });

  it("prints the hub's answer as JSON, JSON lines and YAML", async () => {
    const json = JSON.parse((await muster("get nodes -o json")).stdout);
    const { body } = await api.ask("GET", "/api/v1/admin/nodes");
    expect(json).toEqual(body);
    expect(parse((await muster("get nodes -o yaml")).stdout)).toEqual(body);
    const lines = (await muster("get nodes -o jsonl")).stdout.trim().split("\n");
    expect(lines.map((line) => JSON.parse(line).hostname)).toEqual(["c07u41", "c07u42", "c08u01"]);
    expect(JSON.parse((await muster("get node c07u41 -o json")).stdout)).toMatchObject({
      hostname: "c07u41",
      conditions: [],
    });
  });

  it("says that a page is not the end, and gets all pages", async () => {
    const page = await muster("get nodes --limit 2 --no-headers");
    expect(page.stdout.trim().split("\n")).toHaveLength(2);
    expect(page.stderr).toBe("There are more nodes. Show all by --all, or fewer by a filter.\n");
    const all = await muster("get nodes --limit 2 --all -o name");
    expect(all).toMatchObject({ status: 0, stderr: "", stdout: expect.stringMatching(/^(node\/\S+\n){3}$/) });
  });

  it("gathers what belongs to sites from all sites, and finds one in its site", async () => {
    await api.ask("POST", "/api/v1/admin/maas-sites", siteBody("dc2"));
    const all = await muster("get profiles --columns name,SITE --no-headers");
    expect(
      all.stdout
        .trim()
        .split("\n")
        .map((line) => line.split(/ +/)),
    ).toEqual([
      ["default", "dc1"],
      ["default", "dc2"],
    ]);
    const ambiguous = await muster("get profile default");
    expect(ambiguous).toMatchObject({
      status: 2,
      stdout: "",
      stderr: expect.stringContaining("name its site by --site"),
    });
    expect(await muster("get profile default --site dc2 -o name")).toMatchObject({
      status: 0,
      stdout: "profile/default\n",
    });
    expect(await muster("get tasks")).toMatchObject({
      status: 2,
      stderr: expect.stringContaining("Name it by --node."),
    });
  });

  it("shows onboardings, operations, and an empty list", async () => {
    expect((await muster("get onboardings --status pending -o name")).stdout).toBe("onboarding/new-1\n");
    expect((await muster("get op new-1 --columns kind,hostname,status --no-headers")).stdout).toBe(
      "onboarding  new-1  pending\n",
    );
    expect(await muster("get batches")).toEqual({ status: 0, stdout: "There are no batches.\n", stderr: "" });
  });

  it("ends with the status of what went wrong", async () => {
    const unknown = await muster("get nodes c07u41 nowhere -o name");
    expect(unknown).toMatchObject({
      status: 5,
      stdout: "node/c07u41\n",
      stderr: expect.stringContaining("hostname nowhere is in no item"),
    });
    expect(await muster("get node nowhere")).toMatchObject({ status: 5, stdout: "" });
    expect(await muster(["get", "node", "00000000-0000-4000-8000-000000000000"])).toMatchObject({ status: 5 });
    expect(await muster("get nodse")).toMatchObject({
      status: 2,
      stderr: expect.stringContaining("unknown command 'nodse'"),
    });
    expect(await muster("get nodes --status asleep")).toMatchObject({
      status: 2,
      stderr: expect.stringContaining("validation_failed"),
    });
    expect(await muster("get nodes -o xml")).toMatchObject({ status: 2 });
    const here = (more: Record<string, string>) => musterHere({ ...env, ...more });
    expect(await here({ MUSTER_TOKEN: "wrong" })("get nodes")).toMatchObject({ status: 4 });
    expect(await here({ MUSTER_TOKEN: api.viewer })("get tokens")).toMatchObject({ status: 4 });
    expect(await here({ MUSTER_URL: "http://127.0.0.1:1" })("get nodes")).toMatchObject({ status: 3 });
  });

  it("shows times as ages and states in colours on a terminal only", async () => {
    const now = () => Date.parse("2100-01-01T00:00:00Z");
    const terminal = musterHere(env, { isTerminal: true, now });
    const seen = await terminal("get skus --columns id,STATUS,AGE --no-headers");
    expect(seen.stdout.replaceAll("\u001b", "ESC")).toMatch(/^sku-dc1 {2}ESC\[32mactiveESC\[39m +\d{5}d\n$/);
    const piped = await muster("get skus --columns id,STATUS,AGE --no-headers");
    expect(piped.stdout).toMatch(/^sku-dc1 {2}active {2}20\d\d-\d\d-\d\dT\S+Z\n$/);
  });
});

describe("a verb for several names", () => {
  it("tells what became of each, even if a name stands for several objects", async () => {
    const two = [{ hostname: "twice", status: "active" }].flatMap((one) => [1, 2].map((id) => ({ ...one, id })));
    const { result } = await answering(
      (url) => url.searchParams.get("hostname") === "twice",
      () => json({ items: two, next_cursor: null }),
      () => muster(["cordon", "node", "c07u41", "twice", "c07u42", "--reason", "dust"]),
    );
    expect(result.status).toBe(8);
    expect(result.stdout).toMatch(/^node\/c07u41 .*\nnode\/c07u42 .*\n$/);
    expect(result.stderr).toMatch(/^twice: .*is in 2 items/);
    await muster(["uncordon", "node", "c07u41", "c07u42", "--reason", "clean"]);
  });
});

describe("describe", () => {
  it("shows all hosts of a batch up to a bound, and says if there are more", async () => {
    const host = (at: number) => ({ hostname: `h-${at}`, status: "running" });
    const described = (total: number) =>
      answering(
        (url) => url.pathname.includes("/onboarding-batches/") || url.searchParams.has("batch_id"),
        (_, url) => {
          if (!url.searchParams.has("batch_id")) return json({ batch_id: "b", total });
          const from = Number(url.searchParams.get("cursor") ?? 0);
          const to = from + Number(url.searchParams.get("limit") ?? 50);
          const items = Array.from({ length: Math.min(to, total) - from }, (_one, at) => host(from + at));
          return json({ items, next_cursor: to < total ? String(to) : null });
        },
        () => muster("describe batch b"),
      );
    const whole = (await described(450)).result;
    expect(whole).toMatchObject({ status: 0, stdout: expect.stringMatching(/^ {2}h-449 /m) });
    expect(whole.stdout).not.toContain("More hosts");
    expect((await described(2_001)).result.stdout).toMatch(/h-1999 [\s\S]*The batch has more hosts than these 2000\./);
  });

  it("shows a node with its machine, conditions, operations and what to do", async () => {
    await verb("c07u42", "cordon", "a fan is loud");
    const { status, stdout } = await muster("describe node c07u42");
    expect(status).toBe(0);
    for (const part of [
      /^Node$/m,
      /^ {2}cordon +a fan is loud$/m,
      /^ {2}site +dc1$/m,
      /^Conditions$/m,
      /^Operations\n {2}none$/m,
      /^Tasks of the agent$/m,
    ])
      expect(stdout).toMatch(part);
    await verb("c07u42", "uncordon", "it is mended");
    const json = JSON.parse((await muster("describe node c07u42 -o json")).stdout);
    expect(Object.keys(json)).toEqual(["node", "operations", "allocations", "drift", "tasks"]);
  });

  it("shows an operation with its history, and every other object with its fields", async () => {
    await api.database.database.pool.query(
      `update workflows set status = 'failed_manual_intervention', failure_class = 'hardware_mismatch', failure_code = 'boss_disk_missing',
       failure_message = 'It is away', next_action = 'Insert the disk.' where kind = 'onboard'`,
    );
    const operation = await muster("describe operation new-1");
    expect(operation.stdout).toMatch(/^ {2}status +failed_manual_intervention$/m);
    expect(operation.stdout).toMatch(/^What to do\n {2}onboarding \(boss_disk_missing\): /m);
    expect(operation.stdout).toMatch(/^History$/m);
    expect((await muster("describe site dc1")).stdout).toMatch(/^Profiles\n {2}NAME .*\n {2}default +active/m);
    expect((await muster("describe sku sku-dc1")).stdout).toMatch(/^ {2}gpu_vendor +amd$/m);
    expect(await muster("describe node nowhere")).toMatchObject({ status: 5, stdout: "" });
  });
});

describe("wait", () => {
  it("follows the events of the hub, which it begins to hear before it reads", async () => {
    const heard: string[] = [];
    const end = new AbortController();
    const hub = await Hub.open({}, { ...processIo(), env });
    await followEvents(hub, ["node.cordon.*"], {
      heard: (event) => void heard.push(String(event["subject"])),
      lost: () => undefined,
      signal: end.signal,
    });
    await verb("c08u01", "cordon", "noise");
    await until("the event of the cordon", () => (heard.length > 0 ? true : undefined));
    end.abort();
    expect(heard).toEqual([`nodes/${ids["c08u01"]}`]);
  });

  it("ends with a line for each change as soon as all objects are in the state", async () => {
    const waiting = muster("wait node c07u41 c07u42 --for status=retired");
    await api.database.database.inTx(async (tx) => {
      for (const hostname of ["c07u41", "c07u42"]) await retireNode(tx, NodeId.parse(ids[hostname]));
    });
    const { status, stdout, stderr } = await waiting;
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(stdout).toMatch(/^c07u41: retired$/m);
    expect(stdout).toMatch(/^c07u42: retired$/m);
  });

  it("fails at once if an operation has failed, and says what to do", async () => {
    const { status, stdout } = await muster("wait onboarding new-1");
    expect(status).toBe(1);
    expect(stdout).toMatch(/^new-1: failed_manual_intervention, .*It is away/);
    expect(await muster("wait op new-1 --for status=failed_manual_intervention")).toMatchObject({ status: 0 });
  });

  it("ends at its deadline or by Ctrl-C, and says how to go on", async () => {
    const late = await muster("wait node c08u01 --for status=offline --timeout 1s");
    expect(late).toMatchObject({ status: 7, stdout: "c08u01: active\n" });
    expect(late.stderr).toBe(
      "The deadline has passed; the work goes on. Wait again by: muster wait node c08u01 --for status=offline\n",
    );
    const key = new AbortController();
    const pressed = musterHere(env, { interrupted: () => key.signal, out: () => key.abort() });
    expect(await pressed("wait node c08u01 --for status=offline")).toMatchObject({
      status: 130,
      stderr: expect.stringContaining("Stopped waiting"),
    });
  });

  it("goes on after readings that fail while the hub is away, with one note", async () => {
    const ofNode = (url: URL): boolean => url.pathname.endsWith(`/nodes/${ids["c08u01"]}`);
    const { result, asked } = await answering(
      ofNode,
      (times) => [json({ title: "Starting", code: "starting", status: 503 }, 503), null, json({}, 502)][times - 1],
      () => muster(["wait", "node", ids["c08u01"] ?? "", "--for", "status=active", "--timeout", "60s"]),
    );
    expect({ ...result, asked }).toMatchObject({ status: 0, stdout: `${ids["c08u01"]}: active\n`, asked: 4 });
    expect(result.stderr).toMatch(/^Trying again, because a reading failed: [^\n]+\n$/);
    const key = new AbortController();
    const watching = musterHere(env, { interrupted: () => key.signal, out: () => key.abort() });
    const watch = await answering(
      ofNode,
      (times) => (times === 1 ? null : undefined),
      () => watching(["watch", "node", ids["c08u01"] ?? ""]),
    );
    expect([watch.result.status, watch.asked]).toEqual([130, 2]);
  });

  it("tells an unknown name from an object that is gone", async () => {
    expect(await muster("wait node nowhere --for status=active")).toMatchObject({ status: 5 });
    expect(await muster("wait node nowhere --for deleted")).toMatchObject({ status: 0, stdout: "nowhere: gone\n" });
    expect(await muster("wait node c08u01")).toMatchObject({
      status: 2,
      stderr: expect.stringContaining("Name it by --for"),
    });
    expect(await muster("wait node c08u01 --for status=active --timeout soon")).toMatchObject({ status: 2 });
  });
});

describe("logs", () => {
  it("lose no line, even if many come at once or a reading fails", async () => {
    const entry = (at: number) => ({ at: `t${at}`, kind: "event", what: `line ${at}` });
    const history = Array.from({ length: 300 }, (_, at) => entry(at));
    const key = new AbortController();
    const lines: string[] = [];
    const out = (text: string): void => {
      lines.push(text);
      if (text.includes("line 750")) key.abort();
    };
    let first = true;
    const { result } = await answering(
      (url) => url.pathname.endsWith("/lifecycle"),
      (times, url) => {
        if (times === 2) return null;
        if (times === 3) history.push(...Array.from({ length: 451 }, (_, at) => entry(300 + at)));
        const from = Number(url.searchParams.get("cursor") ?? 0);
        const limit = Number(url.searchParams.get("limit"));
        const items = history.toReversed().slice(from, from + limit);
        if (first) void verb("c08u01", "uncordon", "it is mended");
        first = false;
        return json({ items, next_cursor: from + limit < history.length ? String(from + limit) : null });
      },
      () => musterHere(env, { out, interrupted: () => key.signal })("logs node c08u01 --follow --tail 2"),
    );
    expect(result.status).toBe(130);
    expect(lines.map((line) => Number(/line (\d+)/.exec(line)?.[1]))).toEqual(
      Array.from({ length: 453 }, (_, at) => 298 + at),
    );
  });
});

describe("help and version", () => {
  it("need no hub", async () => {
    const away = musterHere({ ...env, MUSTER_URL: "http://127.0.0.1:1" });
    expect(await away("--help")).toMatchObject({
      status: 0,
      stderr: "",
      stdout: expect.stringMatching(/^Usage: muster <command>/),
    });
    expect(await away("help get nodes")).toMatchObject({
      status: 0,
      stdout: expect.stringContaining("--hostname-prefix"),
    });
    expect((await away("get nodes --help")).stdout).toBe((await away("help get nodes")).stdout);
    const version = await away("version");
    expect(version).toMatchObject({ status: 0, stdout: expect.stringMatching(/^muster +\d+\.\d+\.\d+\n$/) });
    expect(version.stderr).toContain(
      "The version of the hub is not known. The hub at http://127.0.0.1:1 could not be reached",
    );
    expect(await away("version --client")).toMatchObject({ status: 0, stderr: "" });
  });

  it("show the versions of both sides", async () => {
    expect(await muster("version")).toMatchObject({
      status: 0,
      stderr: "",
      stdout: expect.stringMatching(/^muster +\S+\nhub +test\n$/),
    });
    expect(JSON.parse((await muster("version -o json")).stdout)).toMatchObject({ hub: "test" });
  });

  it("follow a mistake on standard error", async () => {
    expect(await muster([])).toMatchObject({ status: 2, stdout: "", stderr: expect.stringMatching(/^Usage: muster/) });
    expect(await muster(["--hub"])).toMatchObject({ status: 2, stdout: "" });
  });
});
