import { randomBytes } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { SiteId } from "../../../shared/ids.ts";
import { type ApiHarness, seedApi, siteBody, startApi } from "../../support/api-harness.ts";
import { apiToken } from "../../support/api-token.ts";
import { commandLine } from "../../support/command-line.ts";
import { addActiveNode, retireNode } from "../../support/site-nodes.ts";

const MAIN = join(import.meta.dirname, "../../../hub/cli/main.ts");
let api: ApiHarness;
let url: string;
let folder: string;
let seed: Awaited<ReturnType<typeof seedApi>>;
let muster: ReturnType<typeof commandLine>;

beforeAll(async () => {
  api = await startApi();
  url = await api.listen();
  seed = await seedApi(api);
  folder = mkdtempSync(join(tmpdir(), "muster-cli-"));
  muster = commandLine({ api, url, cwd: folder });
});
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  await api.close();
});

const file = (name: string, content: string): string => {
  writeFileSync(join(folder, name), content);
  return `@${name}`;
};

describe("the command line", () => {
  it("has a command for every operation of the hub, and its help names the fields", async () => {
    const { stdout } = await muster(["help", "operations"]);
    const { body } = await api.ask("GET", "/api/v1/openapi.json");
    const operations = Object.values(body.paths).flatMap((methods) => Object.values(methods as object));
    for (const { operationId } of operations as { operationId: string }[])
      expect(stdout).toContain(operationId.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`));
    const help = await muster(["help", "create-onboarding"]);
    expect(help.stdout).toMatch(/--ipmi-ip\s+string, needed/);
    const change = await muster(["help", "update-maas-site-profile"]);
    expect(change.stdout).toMatch(/--initialize-extra-disks {2}boolean\n +DESTROYS DATA/);
    const task = await muster(["help", "create-node-task"]);
    expect(task.stdout).toMatch(/^ {2}--type {2}.*node\.heartbeat_check.*, needed$/m);
    expect(task.stdout).toMatch(/^with --type node\.heartbeat_check:\n {4}--input {2}.*"nonce": string.*, needed$/m);
  });

  it("refuses a mistyped name of a setting, and so never runs with another token than the operator named", async () => {
    const { exitCode, stdout, stderr } = await muster(["list-skus"], { MUSTER_TOKENFILE: "/nonexistent" });
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: "" });
    expect(stderr).toContain("There is no setting MUSTER_TOKENFILE. Did you mean MUSTER_TOKEN_FILE?");
  });

  it("ends without a word if the reader of its output ends early", async () => {
    const piped = `"$node" "$main" list-nodes --all | true; printf '%s %s' "\${PIPESTATUS[0]}" "\${PIPESTATUS[1]}"`;
    const env = { ...process.env, MUSTER_URL: url, MUSTER_TOKEN: api.admin, node: process.execPath, main: MAIN };
    const { stdout, stderr } = await execa("bash", ["-c", piped], { env });
    expect({ stdout, stderr }).toEqual({ stdout: "141 0", stderr: "" });
  });

  it("changes the current version, or only the version in --if-match", async () => {
    const change = ["update-maas-site-policy", seed.siteId, "--max-deploy-retry-attempts", "3"];
    expect(await muster([...change, "--output", "json"])).toMatchObject({ exitCode: 0, stderr: "" });
    const stale = await muster([...change, "--if-match", '"1"']);
    expect(stale.exitCode).toBe(1);
    expect(stale.stderr).toMatch(/^precondition_failed \(412\)/);
    const policy = await muster(["get-maas-site-policy", seed.siteId, "--output", "json"]);
    expect(JSON.parse(policy.stdout).max_deploy_retry_attempts).toBe(3);
  });

  it("names the approval of a second person by --approval, and says when a command takes none", async () => {
    const { pool, inTx } = api.database.database;
    const rule = "update maas_site_profiles set second_person = $1 where id = $2";
    await pool.query(rule, [["full_decommission"], seed.profileId]);
    const id = await inTx(async (tx) => {
      const nodeId = await addActiveNode(tx, { siteId: SiteId.parse(seed.siteId), hostname: "old-1" });
      await retireNode(tx, nodeId);
      return nodeId;
    });
    const [ann, bob] = [
      await apiToken(api.database, { name: "ann", role: "operator" }),
      await apiToken(api.database, { name: "bob", role: "operator" }),
    ];
    const remove = (...more: string[]) =>
      muster(["remove-node", id, "--reason", "old", ...more], { MUSTER_TOKEN: ann });
    const asked = await remove();
    const approval = /muster: --approval ([\w-]{36})/.exec(asked.stderr)?.[1] ?? asked.stderr;
    expect((await muster(["grant-approval", approval, "--reason", "seen"], { MUSTER_TOKEN: bob })).exitCode).toBe(0);
    expect((await remove("--approval", approval)).exitCode).toBe(0);
    expect((await remove("--approval", approval)).stderr).toMatch(/^approval_unusable \(409\): .* It is used\./);
    const drain = await muster(["cordon-node", id, "--reason", "old", "--approval", approval]);
    expect(drain).toMatchObject({ exitCode: 2, stderr: expect.stringContaining("takes no --approval") });
    await pool.query(rule, [[], seed.profileId]);
  });

  it("onboards a host, shows it, and runs a verb with its reason", async () => {
    const { siteId, profileId, skuId } = seed;
    const host = ["--hostname", "gpu-1", "--ipmi-ip", "10.0.0.1"];
    const selectors = ["--site-id", siteId, "--profile-id", profileId, "--sku-id", skuId];
    const created = await muster(["create-onboarding", ...selectors, ...host, "--output", "json"]);
    expect(created).toMatchObject({ exitCode: 0, stderr: "" });
    const { onboarding_id: id } = JSON.parse(created.stdout);
    const list = await muster(["list-onboardings", "--status", "pending"]);
    expect(list.stdout.split("\n")[0]).toMatch(/^hostname +onboarding_id +status/);
    expect(list.stdout).toMatch(new RegExp(`gpu-1 +${id} +pending`));
    const cancelled = await muster(["cancel-onboarding", id, "--reason", "wrong rack"]);
    expect(cancelled.stdout).toMatch(/^status +cancelled$/m);
    expect(cancelled.stdout).toContain("wrong rack");
  });

  it("reads lists, whole bodies and secrets from files and from standard input", async () => {
    const { siteId, profileId, skuId } = seed;
    const nodes = [{ hostname: "gpu-2", ipmi_ip: "10.0.0.2" }];
    const body = { site_id: siteId, profile_id: profileId, sku_id: skuId, nodes };
    const piped = await muster(["create-onboarding-batch", "--json", "@-"], {}, JSON.stringify(body));
    expect(piped).toMatchObject({ exitCode: 0, stderr: "" });
    const flags = ["--json", JSON.stringify({ ...body, nodes: undefined }), "--nodes"];
    const again = await muster(["create-onboarding-batch", ...flags, file("nodes.json", JSON.stringify(nodes))]);
    expect(again.exitCode, "the same host again").toBe(1);
    expect(again.stderr).toMatch(/^onboarding_exists \(409\): /);
    const token = file("token", "consumer:token:secret-that-is-not-shown\n");
    const written = await muster(["write-maas-site-credentials", siteId, "--maas-token", token]);
    expect(written).toMatchObject({ exitCode: 0, stderr: "" });
    expect(written.stdout).not.toContain("secret-that-is-not-shown");
  });

  it("reads all pages of a list", async () => {
    for (const name of ["dc2", "dc3", "dc4"]) await api.ask("POST", "/api/v1/admin/maas-sites", siteBody(name));
    const page = await muster(["list-maas-sites", "--limit", "2"]);
    expect(page.stdout).toMatch(/More: --cursor /);
    const all = await muster(["list-maas-sites", "--limit", "2", "--all", "--output", "json"]);
    expect(JSON.parse(all.stdout).items).toHaveLength(4);
  });

  it("shows the outcome and reason of every row, and exits with 1 if a row failed", async () => {
    const rows = [
      { hostname: "gpu-9", interface: "ens1np0", ipv4_cidr: "172.30.0.1/31" },
      { hostname: "gpu-9", interface: "ens2np0", ipv4_cidr: "nonsense" },
    ];
    const written = await muster(["upsert-roce-assignments", seed.siteId, "--items", JSON.stringify(rows)]);
    expect(written.stdout).toMatch(/^written +1\nfailed +1\n/);
    expect(written.stdout).toMatch(/^0 +created +-$/m);
    expect(written.stdout).toMatch(/^1 +failed +.*ipv4_cidr/m);
    expect(written).toMatchObject({
      exitCode: 1,
      stderr: expect.stringMatching(/^Not everything was done \(failed: 1\)/),
    });
    const json = ["upsert-roce-assignments", seed.siteId, "--output", "json", "--items"];
    const failed = await muster([...json, JSON.stringify(rows.slice(1))]);
    expect(failed.exitCode).toBe(1);
    expect(JSON.parse(failed.stdout).items).toMatchObject([{ outcome: "failed" }]);
    expect(await muster([...json, JSON.stringify(rows.slice(0, 1))])).toMatchObject({ exitCode: 0, stderr: "" });
    const list = await muster(["list-roce-assignments", seed.siteId]);
    expect(list.stdout).toMatch(/gpu-9 +ens1np0 +172\.30\.0\.1\/31/);
    const status = await muster(["get-reconciliation-status"]);
    expect(status.stdout).toMatch(/^name +site_id +status +ok +drifted/m);
  });

  it("exits with 1 if a batch verb failed for a host that it was meant for", async () => {
    const { siteId, profileId, skuId } = seed;
    const nodes = ["7", "8", "9"].map((n) => ({ hostname: `batch-${n}`, ipmi_ip: `10.0.7.${n}` }));
    const body = { site_id: siteId, profile_id: profileId, sku_id: skuId, nodes };
    const created = await muster(["create-onboarding-batch", "--json", JSON.stringify(body), "--output", "json"]);
    const { batch_id: batch } = JSON.parse(created.stdout);
    const { pool } = api.database.database;
    const fail = (hostname: string, failureClass: string) =>
      pool.query(
        `update workflows w set status = 'failed_manual_intervention', failure_class = $2, failure_code = 'x'
         from node_onboardings o where o.onboarding_id = w.id and o.hostname = $1`,
        [hostname, failureClass],
      );
    await fail("batch-7", "upstream_transient");
    await fail("batch-8", "no_such_class");
    const shown = await muster(["get-onboarding-batch", batch]);
    expect(shown.stdout).toMatch(
      /^failures\nfailure_class .*\nupstream_transient .*\n {2}hostname +onboarding_id.*\n {2}batch-7 +[0-9a-f-]{36}/m,
    );
    const recover = ["recover-onboarding-batch", batch, "--reason", "MAAS is back"];
    const asked = await muster([...recover, "--failure-class", "upstream_transient"]);
    expect(asked, "the host of another class was not meant").toMatchObject({ exitCode: 0, stderr: "" });
    const all = await muster(recover);
    expect(all.stdout).toMatch(/^batch-8 .*recommends no verb$/m);
    expect(all).toMatchObject({
      exitCode: 1,
      stderr: expect.stringMatching(/^Not everything was done \(skipped: 1\)/),
    });
    expect(await muster(["cancel-onboarding-batch", batch, "--reason", "enough"])).toMatchObject({ exitCode: 0 });
  });

  it("decommissions nodes that it names by hostname, shows which were refused and why, and then exits with 1", async () => {
    const siteId = SiteId.parse(seed.siteId);
    await api.database.database.inTx(async (tx) => {
      await addActiveNode(tx, { siteId, hostname: "leaves-1" });
      await retireNode(tx, await addActiveNode(tx, { siteId, hostname: "leaves-2" }));
    });
    const operation = JSON.stringify({ mode: "drain", reason: "the rack moves" });
    const create = ["create-decommission-batch", "--site-id", "dc1", "--operation", operation];
    const both = [...create, "--node-ids", "leaves-1", "--node-ids", "leaves-2"];
    const planned = await muster([...both, "--plan", "true"]);
    expect(planned, "a plan that was made is a success").toMatchObject({ exitCode: 0, stderr: "" });
    expect(planned.stdout).toMatch(/^leaves-2 +\S+ +conflict +Node leaves-2 is retired/m);
    const created = await muster(both);
    expect(created).toMatchObject({
      exitCode: 1,
      stderr: expect.stringMatching(/^Not everything was done \(refused: 1\)/),
    });
    expect(created.stdout).toMatch(/^leaves-2 +\S+ +conflict +Node leaves-2 is retired/m);
    const batch = /^batch_id +(\S+)$/m.exec(created.stdout)?.[1] ?? "";
    const shown = await muster(["get-decommission-batch", batch]);
    expect(shown.stdout).toMatch(/^mode +drain$/m);
    const cancelled = await muster(["cancel-decommission-batch", batch, "--reason", "not yet"]);
    expect(cancelled).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(/^leaves-1 .* cancelled/m) });
  });

  it("describes in the help what a flag takes, even a record or a list of records", async () => {
    const credentials = await muster(["help", "write-maas-site-credentials"]);
    expect(credentials.stdout).toContain('--power  {"user": string, "pass": string, "driver": ipmi | redfish}');
    const batch = await muster(["help", "create-onboarding-batch"]);
    expect(batch.stdout).toContain(
      '--nodes  list of {"ipmi_ip": string, "hostname": string, "pxe_mac": string, "location"',
    );
    expect(batch.stdout).toContain(
      '"location": {"room": string | null, "rack": string | null, "unit": integer | null}',
    );
    const wrong = await muster(["write-maas-site-credentials", seed.siteId, "--power", "root:calvin"]);
    expect(wrong).toMatchObject({ exitCode: 2, stdout: "" });
    expect(wrong.stderr).toBe(
      '--power takes {"user": string, "pass": string, "driver": ipmi | redfish}; the given value does not match.',
    );
  });

  it("sends the token only to the hub, whatever address a field has", async () => {
    const heard: string[] = [];
    const stranger = createServer((request, response) => {
      heard.push(`${request.method} ${request.url}`);
      response.end("{}");
    });
    await new Promise<void>((resolve) => stranger.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(stranger.address() as AddressInfo).port}/hook`;
    const secret = file("hook-secret", `whsec_${randomBytes(32).toString("base64")}`);
    const made = await muster(["create-webhook", "--url", url, "--secret", secret, "--output", "json"]);
    expect(made).toMatchObject({ exitCode: 0, stderr: "" });
    const { id } = JSON.parse(made.stdout);
    const changed = await muster(["update-webhook", id, "--url", `${url}/2`, "--output", "json"]);
    expect(changed).toMatchObject({ exitCode: 0, stderr: "" });
    expect(JSON.parse(changed.stdout)).toMatchObject({ id, url: `${url}/2` });
    await new Promise((resolve) => stranger.close(resolve));
    expect(heard).toEqual([]);
  });

  it("runs operations that return a secret, without an Idempotency-Key", async () => {
    const words = [
      "--hostname",
      "by-hand",
      "--sku-id",
      seed.skuId,
      "--region-code",
      "eu-1",
      "--onboarding-mode",
      "manual",
    ];
    const made = await muster(["create-node", ...words, "--output", "json"]);
    expect(made).toMatchObject({ exitCode: 0, stderr: "" });
    const { node_id: node } = JSON.parse(made.stdout);
    for (const command of ["create-bootstrap-command", "issue-report-token"])
      expect(await muster([command, node]), command).toMatchObject({ exitCode: 0, stderr: "" });
  });

  it("prints Done if the hub's answer is empty", async () => {
    await api.ask("POST", "/api/v1/admin/skus", { id: "gone", gpu_vendor: "none", gpus_total: 0 });
    expect(await muster(["disable-sku", "gone"])).toEqual({ exitCode: 0, stdout: "Done.", stderr: "" });
  });

  it.each([
    { args: ["create-profile"], status: 2, says: /Did you mean create-maas-site-profile\? See: muster help/ },
    { args: [], status: 2, says: /^Usage: muster <command>/ },
    { args: ["fly"], status: 2, says: /There is no command fly\. See: muster help/ },
    { args: ["create-onboarding", "--hostname", "x"], status: 2, says: /needs --site-id, --profile-id, --sku-id/ },
    {
      args: ["list-onboardings", "--colour", "red"],
      status: 2,
      says: /^Unknown option '--colour'\. See: muster help list-onboardings$/,
    },
    { args: ["get-onboarding"], status: 2, says: /takes <id>, not 0/ },
    { args: ["create-onboarding", "--json", "{"], status: 2, says: /--json takes JSON/ },
    { args: ["list-onboardings", "--token-file", "none"], status: 2, says: /none could not be read/ },
    { args: ["list-onboardings", "--status", "asleep"], status: 1, says: /^validation_failed \(400\): .*status/ },
  ])("reports for $args what is wrong", async ({ args, status, says }) => {
    const { exitCode, stdout, stderr } = await muster(args);
    expect({ exitCode, stdout }).toEqual({ exitCode: status, stdout: "" });
    expect(stderr).toMatch(says);
  });

  it("writes the diagnostics into one private file, and says what is missing in it", async () => {
    const written = await muster(["diagnostics", "--output", "hub.json"], { MUSTER_TOKEN: api.viewer });
    expect(written).toMatchObject({ exitCode: 0, stderr: "" });
    expect(written.stdout).toMatch(
      /^hub.json: \d+ bytes, (\d+) of \1 sections, readable only by you\.\nIt holds no secret\./,
    );
    const path = join(folder, "hub.json");
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(JSON.parse(readFileSync(path, "utf8"))).toMatchObject({
      schema_version: 1,
      sections: { hub: { data: {} } },
    });

    await api.database.database.pool.query("alter table webhooks rename to webhooks_away");
    for (let n = 0; n < 1_200; n += 1) api.log.info("again");
    const partly = await muster(["diagnostics"]);
    await api.database.database.pool.query("alter table webhooks_away rename to webhooks");
    expect(partly.stdout).toMatch(/^muster-diagnostics-[\dTZ-]+\.json: /);
    expect(partly.stdout).toMatch(/Could not be read:\n {2}webhooks: section_failed: .*does not exist/);
    expect(partly.stdout).toMatch(/Left out, because there is too much of it:\n {2}log: lines: \d+ of \d+\n/);
    expect(readdirSync(folder).filter((name) => name.startsWith("muster-diagnostics-"))).toHaveLength(1);
  });

  it.each([
    { args: ["--output", "token"], status: 1, says: /^token could not be written: it already exists\./ },
    { args: ["--output", "no/such/folder"], status: 1, says: /ENOENT/ },
    { args: ["--output", "json"], status: 2, says: /--output names a file here/ },
    { args: ["--colour"], status: 2, says: /Unknown option '--colour'/ },
    { args: ["now"], status: 2, says: /takes no arguments/ },
  ])("reports for diagnostics $args what is wrong", async ({ args, status, says }) => {
    file("token", "a file of somebody's");
    const { exitCode, stdout, stderr } = await muster(["diagnostics", ...args]);
    expect({ exitCode, stdout }).toEqual({ exitCode: status, stdout: "" });
    expect(stderr).toMatch(says);
    expect(readFileSync(join(folder, "token"), "utf8")).toBe("a file of somebody's");
  });

  it("distinguishes an unreachable hub from one that refuses", async () => {
    const away = await muster(["list-nodes"], { MUSTER_URL: "http://127.0.0.1:1" });
    expect(away.exitCode).toBe(3);
    expect(away.stderr).toMatch(/^The hub at http:\/\/127\.0\.0\.1:1 could not be reached .*MUSTER_URL/);
    const viewer = await muster(["cancel-onboarding", seed.siteId, "--reason", "r"], { MUSTER_TOKEN: api.viewer });
    expect(viewer).toMatchObject({ exitCode: 1 });
    expect(viewer.stderr).toMatch(/^forbidden \(403\)/);
    const nobody = await muster(["list-nodes"], { MUSTER_TOKEN: "" });
    expect(nobody.stderr).toMatch(/^unauthenticated \(401\)/);
  });

  it("removes terminal control characters from quoted answers", async () => {
    const description = "\u001b[2J\u001b]0;owned\u0007";
    await api.ask("POST", "/api/v1/admin/skus", { id: "steer", gpu_vendor: "amd", gpus_total: 1, description });
    const { stdout } = await muster(["get-sku", "steer"]);
    expect(stdout).toContain("owned");
    expect(stdout).not.toContain("\u001b");
  });
});
