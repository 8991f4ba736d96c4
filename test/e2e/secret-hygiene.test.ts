import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { execa } from "execa";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { Diagnostics } from "../../hub/diagnostics/take.ts";
import { SITE_BMC_USER } from "../fakes/maas/state/site.ts";
import { VaultFault } from "../fakes/vault/answer.ts";
import { agentPids } from "../support/agent-processes.ts";
import { TENANTS_FILES } from "../support/canary-host.ts";
import { CanarySite, filesBelow } from "../support/canary-site.ts";
import { CanaryDecommissions } from "../support/canary-tenant.ts";
import { crawlApi } from "../support/crawl-api.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { storedRows } from "../support/database-text.ts";
import { memoryFolder } from "../support/memory-folder.ts";
import type { Leak } from "../support/secret-search.ts";
import { until } from "../support/until.ts";
import { newSecret } from "../support/webhook-receiver.ts";

const CLI = new URL("../../hub/cli/main.ts", import.meta.url).pathname;
/** The file that the command line writes with the hub's diagnostics, below the folder that the test searches for secrets. */
const DIAGNOSTICS = "diagnostics.json";
const ManualNode = z.looseObject({ node_id: z.string(), bootstrap_command: z.string() });
const ReportToken = z.looseObject({ token: z.string() });

/** Files below `stateDir` that may contain secrets, each with the reason. The test searches all files below `stateDir` that `KEPT` does not name. */
const KEPT: readonly (readonly [RegExp, string])[] = [
  [/^maas\.(json|log)$/, "MAAS itself"],
  [/^vault-secret-id$/, "the file that the operator gives the hub"],
  [/^hub\/admin-token$/, "the file that tells the operator the first token"],
  [/^hosts\/[^/]+\/var\/lib\/cloud\/instance/, "the user-data, which cloud-init keeps for root"],
  [TENANTS_FILES, "what a tenant and the operator keep on the host"],
  [/^hosts\/[^/]+\/etc\/muster\/enrollment-token$/, "the token of a host that has not enrolled"],
  [/^hosts\/[^/]+\/etc\/maas\/maas-machine-creds\.yml$/, "the host's own token of its hardware sync"],
  [/^hosts\/[^/]+\/etc\/cloud\/cloud\.cfg\.d\//, "the same, from MAAS's vendor-data"],
];

describe("every secret of a site, its hosts and its hub", () => {
  const stateDir = mkdtempSync(join(memoryFolder(), "muster-secrets-"));
  const reports = join(stateDir, "reports");
  let database: TestDatabase;
  let world: CanarySite;

  beforeAll(async () => {
    mkdirSync(reports);
    database = await createTestDatabase();
    world = await CanarySite.start(stateDir, database, ["--report-on-signal", `--report-directory=${reports}`]);
    await world.furnish();
  });
  afterAll(async () => {
    await world?.stop();
    await database?.drop();
    rmSync(stateDir, { recursive: true, force: true });
  });

  const verb = (id: string, name: string) => world.ask("POST", `onboardings/${id}/${name}`, { reason: "mended" });

  it("is used by onboardings that fail in each way that repeats it, and that succeed in the end", async () => {
    await Promise.all([world.setBmcPassword(0, world.keys.bmc), world.setBmcPassword(1, world.keys.override)]);
    await world.setBmcPassword(2, "another");
    await world.maas.fault({ match: { method: "POST", path: "machines/", op: "" }, kind: "echo_form" });
    const first = await world.onboard(0);
    expect((await world.ends(first.id, "failed")).error_code).toBe("maas_rejected_input");
    const secret = world.keys.apiKey.split(":")[2];
    const body = `Authorization Error: 'Invalid signature. Expected signature base string: &${secret}'`;
    await world.maas.fault({ match: { path: "machines/" }, kind: "status", code: 401, body, times: 1000 });
    await verb(first.id, "rerun");
    expect((await world.ends(first.id, "failed")).error_code).toBe("maas_token_rejected");
    await world.maas.clearFaults();
    // The BMC of the third host refuses the site's login. The simulated MAAS refuses the deploys of the first two hosts, and repeats the hosts' user
    // data in its answer.
    await world.maas.fault({ match: { op: "deploy" }, kind: "echo_form" });
    const [second, third] = [await world.onboard(1), await world.onboard(2)];
    await verb(first.id, "rerun");
    const refused = await until("a deploy was refused", async () =>
      (await world.rig.api.onboardings()).find((one) => one.error_code === "maas_rejected_input"),
    );
    await world.ends(third.id, "failed");
    expect(refused.error_message).toContain("[redacted]");
    await world.setBmcPassword(2, world.keys.bmc);
    await verb(third.id, "rerun");
    await failDeployAloud(refused.onboarding_id, refused.hostname);
    await verb(refused.onboarding_id, "rerun");
    for (const { id } of [first, second, third]) await world.ends(id, "completed");
  });

  /** Fails a deploy with a message that contains the host's secrets. MAAS stores the message as the machine's error and as an event. */
  async function failDeployAloud(onboardingId: string, hostname: string): Promise<void> {
    const machine = (await world.maas.machines()).find((one) => one.hostname === hostname);
    const plan = (deploy: string[]) => world.maas.call("POST", `machines/${machine?.system_id}/outcomes`, { deploy });
    await plan(["hang"]);
    await verb(onboardingId, "rerun");
    const DEPLOYING = 9;
    await until("the machine deploys", async () =>
      (await world.maas.machines()).find((one) => one.hostname === hostname && one.status === DEPLOYING),
    );
    const { enrollmentToken, passwordHash } = world.collect().find((one) => one.hostname === hostname) ?? {};
    expect(enrollmentToken).toMatch(/^[\w-]{43}$/);
    const reason = `curl -H 'Authorization: Bearer ${enrollmentToken}' failed; usermod -p '${passwordHash}'; ${enrollmentToken}: not found`;
    await world.maas.call("POST", `machines/${machine?.system_id}/fail-deploy`, { reason });
    await plan([]);
    expect((await world.ends(onboardingId, "failed")).error_message).toContain("[redacted]");
  }

  it("is refused as a wrong, used, expired or unknown token of a host or a caller, and in an unreadable body", async () => {
    const { secrets } = world;
    const [used] = world.collect();
    const [node] = await world.rig.api.nodes();
    await world.enroll(secrets.plant("an enrollment token that nobody issued"));
    await world.enroll(used?.enrollmentToken ?? "", node?.id);
    const path = `nodes/${node?.id}/report-token`;
    const former = ReportToken.parse(await world.ask("POST", path, {})).token;
    const present = ReportToken.parse(await world.ask("POST", path, {})).token;
    secrets.add("a report token", former);
    secrets.add("the report token", present);
    const event = { name: "modules-final", event_type: "finish", result: "FAIL", description: `ran with ${present}` };
    for (const token of [former, present]) {
      await world.askListener("POST", `/internal/v1/phone-home/${token}`, "hostname=x&instance_id=y");
      await world.askListener("POST", `/internal/v1/cloud-init/${token}`, event);
      await world.askListener("POST", `/internal/v1/cloud-init/${token}`, "no json");
    }
    await byHand();
    const unknown = secrets.plant("an API token that nobody issued");
    await world.ask("GET", "nodes", undefined, unknown);
    const credentials = `maas-sites/${world.site?.siteId}/credentials`;
    const power = { user: "root", pass: secrets.plant("a password in a bad body") };
    await world.ask("POST", credentials, { maas_token: world.keys.wrongKey });
    await world.ask("POST", credentials, { maas_token: secrets.plant("a token of no form"), power });
    await world.ask("POST", credentials, { power: [power], deploy_password: `${secrets.plant("unprintable")}\u0007` });
    await world.ask("POST", credentials, `{"power": ${JSON.stringify(power)}`);
    await world.ask("POST", "webhooks", {
      url: "http://127.0.0.1:1",
      secret: `whsec_${secrets.plant("no base64", "-")}`,
    });
  });

  /**
   * Creates a node whose host a person installs by hand (manual mode). A manual node's enrollment token occurs only in the hub's answer to the
   * request that creates the node.
   */
  async function byHand(): Promise<void> {
    const host = { onboarding_mode: "manual", hostname: "by-hand", sku_id: world.site?.skuId, region_code: "demo-1" };
    const made = ManualNode.parse(await world.ask("POST", "nodes", host));
    const tokenOf = (command: string) => /Bearer %s" ([\w-]+)\)/.exec(command)?.[1] ?? "";
    const first = tokenOf(made.bootstrap_command);
    const again = await world.ask("POST", `nodes/${made.node_id}/bootstrap-command`, {});
    const second = tokenOf(ManualNode.parse(again).bootstrap_command);
    for (const token of [first, second]) world.secrets.add("a token of manual mode", token);
    const script = () =>
      world.askListener("GET", "/internal/v1/bootstrap-script", undefined, { authorization: `Bearer ${second}` });
    expect(await script()).toContain(second);
    await world.askListener("GET", "/internal/v1/bootstrap-script", undefined, { authorization: `Bearer ${first}` });
    await database.database.pool.query(
      "update enrollment_tokens set expires_at = now() - interval '1 s' where used_at is null",
    );
    expect(await script()).toContain("token_expired");
    await world.enroll(second, made.node_id);
  }

  it("is rotated, and needed while Vault is sealed or repeats it in an error", async () => {
    const { secrets } = world;
    const site = `maas-sites/${world.site?.siteId}`;
    const power = { user: SITE_BMC_USER, pass: secrets.plant("the site's next BMC password") };
    await world.ask("POST", `${site}/credentials`, {
      power,
      deploy_password: secrets.plant("the next deploy password"),
    });
    const move = (maas_token: string, api_base_url: string) =>
      world.ask("POST", `${site}/move`, { api_base_url, maas_token, reason: "it has a name now" });
    const { url } = world.rig.maas;
    await move(`a:b:${secrets.plant("a token that is not the site's")}`, url);
    await move(`a b:${secrets.plant("a token of no form to move with")}`, url);
    const named = url.replace("127.0.0.1", "localhost");
    expect(await move(world.keys.apiKey, named)).toMatchObject({ api_base_url: named });
    const next = newSecret();
    secrets.add("the webhook's next secret", next.slice("whsec_".length));
    world.receiver.answer = (_nth, { signatures }) => ({ status: 500, headers: { "x-signed": String(signatures) } });
    await world.ask("POST", `webhooks/${world.webhookId}/rotate-secret`, { secret: next });
    await world.ask("POST", `webhooks/${world.webhookId}/test`, {});
    await until(
      "a delivery was answered with an error",
      async () =>
        /"last_status":500/.test(JSON.stringify(await world.ask("GET", `webhooks/${world.webhookId}/deliveries`))) ||
        undefined,
    );
    world.receiver.answer = () => 204;
    const vault = world.vault.double;
    const [token = ""] = vault.tokens.issued.slice(-1);
    const asked = async () => {
      const answers = [
        await world.ask("POST", `${site}/probe`),
        await world.ask("POST", `${site}/credentials`, { power }),
      ];
      expect(answers).toMatchObject([{ status: 503 }, { status: 503 }]);
    };
    vault.seal();
    await asked();
    vault.unseal();
    // The simulated Vault answers like a proxy that repeats the hub's request in its error text.
    vault.failing = new VaultFault(500, [`x-vault-token: ${token}`, power.pass]);
    await asked();
    vault.failing = null;
    // The hub logs in to Vault twice: with a secret ID that Vault refuses, and with a secret ID that Vault repeats in its refusal.
    vault.tokens.revokeAll();
    world.vault.giveSecretId(secrets.plant("a secret ID that Vault refuses"));
    await asked();
    const repeated = world.vault.giveSecretId(secrets.plant("a secret ID that Vault repeats"));
    vault.failing = new VaultFault(400, [`invalid secret_id "${repeated}"`]);
    await asked();
    vault.failing = null;
    secrets.add("the hub's next secret ID", world.vault.giveSecretId());
    expect(await world.ask("POST", `${site}/probe`)).toMatchObject({ checks: expect.anything() });
  });

  it("is on a host whose tools print it, and that is drained, removed and released", async () => {
    const node = (await world.rig.api.nodes()).find((one) => one.status === "active");
    const root = world.hostFolder(node?.hostname ?? "");
    const tool = join(root, "usr/bin/loginctl");
    const whole = readFileSync(tool, "utf8");
    const aloud = "cat etc/maas/maas-machine-creds.yml var/lib/cloud/instance/scripts/20-agent-bootstrap.sh";
    writeFileSync(tool, `#!/bin/sh\ncd '${root}'; ${aloud} | grep -aE 'token|TOKEN|key|CONFIG' >&2; exit 1\n`);
    const decommissions = new CanaryDecommissions(world);
    const drain = await decommissions.start(node?.id ?? "", "drain");
    await until("the tool has failed aloud", async () => {
      const { rows } = await database.database.pool.query("select error_message from tasks where type = 'node.drain'");
      return /loginctl ended with status 1.*\[redacted\]/s.test(JSON.stringify(rows)) || undefined;
    });
    expect(JSON.stringify(await world.ask("GET", "diagnostics"))).toContain("loginctl ended");
    writeFileSync(tool, whole);
    await decommissions.completes(drain);
    for (const mode of ["remove", "release"] as const)
      await decommissions.completes(await decommissions.start(node?.id ?? "", mode));
  });

  it("is on a host with a tenant, and that each mode of a decommission cleans", async () => {
    await new CanaryDecommissions(world).turnOver(database.database.pool);
  });

  it("is not printed by the command line", async () => {
    const file = join(stateDir, "wrong-token");
    writeFileSync(file, world.keys.wrongKey);
    const [site, [onboarding]] = [world.site?.siteId ?? "", await world.rig.api.onboardings()];
    const commands = [
      ["list-maas-sites", "--output", "json"],
      ["get-onboarding", onboarding?.onboarding_id ?? ""],
      ["write-maas-site-credentials", site, "--maas-token", `@${file}`],
      ["list-domain-events", "--all", "--output", "json"],
      ["diagnostics", "--output", join(stateDir, DIAGNOSTICS)],
    ];
    for (const command of commands) {
      const env = { MUSTER_URL: world.rig.apiUrl, MUSTER_TOKEN_FILE: world.rig.adminTokenFile };
      const { stdout, stderr } = await execa(process.execPath, [CLI, ...command], { env, reject: false });
      world.seen.push({ place: `muster ${command[0]}`, text: `${stdout}\n${stderr}` });
      expect(`${stdout}${stderr}`).not.toBe("");
    }
    rmSync(file);
  });

  describe("is in no other place", () => {
    const leaks = (texts: readonly { place: string; text: string }[]): Leak[] =>
      texts.flatMap(({ place, text }) => world.secrets.leaksIn(place, text));

    it("is found where it was planted, for every kind of secret", () => {
      for (const kind of [
        "MAAS token",
        "Vault token",
        "secret ID",
        "BMC",
        "deploy",
        "enrollment",
        "report",
        "webhook",
        "admin",
        "machine",
        "manual",
        "Weka",
        "tenant",
        "report token of a reimage",
      ])
        expect(world.secrets.names.join()).toContain(kind);
      expect(leaks([{ place: "a planted one", text: JSON.stringify(world.keys) }]).length).toBeGreaterThanOrEqual(5);
    });

    it("is in no answer of the API, error, event, webhook or log of a host before its wipe", async () => {
      const { apiUrl, adminTokenFile } = world.rig;
      const answers = await crawlApi(apiUrl, readFileSync(adminTokenFile, "utf8").trim(), database.database.pool);
      expect(answers.filter((one) => one.status !== 200)).toEqual([]);
      expect(answers.length).toBeGreaterThan(40);
      expect(world.seen.filter(({ place }) => place === "the event stream")).not.toEqual([]);
      expect(world.receiver.received).not.toEqual([]);
      const told = world.receiver.received.map((one) => ({ place: "a webhook", text: JSON.stringify(one) }));
      expect(leaks([...world.seen, ...told, ...answers.map(({ path, text }) => ({ place: path, text }))])).toEqual([]);
    });

    it("is in no row of the database", async () => {
      const { pool } = database.database;
      const rows = await storedRows(pool);
      expect(rows.length).toBeGreaterThan(100);
      expect(leaks(rows.map(({ table, text }) => ({ place: table, text })))).toEqual([]);
      await pool.query("create table scratch as select convert_to($1::text, 'UTF8') as bytes", [world.keys.override]);
      expect(leaks((await storedRows(pool)).map(({ table, text }) => ({ place: table, text })))).toHaveLength(1);
      await pool.query("drop table scratch");
    });

    it("is in no diagnostics, by API or by command line", async () => {
      const written = readFileSync(join(stateDir, DIAGNOSTICS), "utf8");
      const asked = JSON.stringify(Diagnostics.parse(await world.ask("GET", "diagnostics")));
      for (const text of [written, asked]) {
        expect(text).not.toMatch(/"error":\s*\{\s*"code"/);
        expect(text).toContain("diagnostics are taken");
      }
      expect(leaks([written, asked].map((text) => ({ place: "the diagnostics", text })))).toEqual([]);
    });

    it("is in no diagnostic report, no command line and no environment of an agent", async () => {
      process.kill(world.rig.hubPid(), "SIGUSR2");
      const report = await until("the report is whole", () => {
        const [name] = readdirSync(reports);
        const text = name === undefined ? "" : readFileSync(join(reports, name), "utf8");
        JSON.parse(text);
        return text;
      });
      expect(report).toContain("javascriptHeap");
      const agents = agentPids(join(stateDir, "hosts"));
      expect(agents).not.toEqual([]);
      const procs = [
        ...[world.rig.hubPid(), ...agents].map((pid) => `/proc/${pid}/cmdline`),
        // The test does not search the hub's own environment, because an operator puts the secret DATABASE_URL there.
        ...agents.map((pid) => `/proc/${pid}/environ`),
      ];
      const texts = procs.map((place) => ({ place, text: readFileSync(place, "utf8") }));
      expect(leaks([...texts, { place: "the report", text: report }])).toEqual([]);
    });

    it("is in no log or file of the hub, an agent or a first boot", () => {
      const files = filesBelow(stateDir).map(({ path, text }) => ({ place: relative(stateDir, path), text }));
      const searched = files.filter(({ place }) => !KEPT.some(([kept]) => kept.test(place)));
      for (const part of ["hub.log", "var/log/muster-agent", "cloud-init-output.log", "journal"])
        expect(searched.some(({ place }) => place.includes(part)) ? part : `no ${part}`).toBe(part);
      expect(readFileSync(join(stateDir, "hub.log"), "utf8")).toContain('"level":"debug"');
      expect(leaks(searched)).toEqual([]);
      expect(leaks(files), "what is left out would be found").not.toEqual([]);
    });
  });
});
