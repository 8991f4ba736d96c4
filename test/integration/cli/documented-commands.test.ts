/** Runs every command and sends every request body that the README, the docs and the help show. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { operationsOf } from "../../../hub/cli/description.ts";
import { helpText } from "../../../hub/cli/output.ts";
import { OWN, VERB_NAMES } from "../../../hub/cli/program/verbs.ts";
import { openApiDocument } from "../../../hub/http/openapi.ts";
import { ROUTES } from "../../../hub/http/routes/index.ts";
import { USAGE } from "../../../hub/startup/usage.ts";
import manifest from "../../../package.json" with { type: "json" };
import { makeSchedulable, SSH_KEY } from "../../support/allocatable-node.ts";
import { type ApiHarness, startApi } from "../../support/api-harness.ts";
import { prepareInstance } from "../../support/documented-instances.ts";
import { prepareRepair, RESTORE_OVERRIDE } from "../../support/documented-repairs.ts";
import { COMMANDS, found, REPOSITORY, readOf } from "../../support/documents.ts";
import { GatewayRig } from "../../support/gateway-rig.ts";

/**
 * Documented commands that a file other than this test runs. Each key is the beginning of such commands. In `ELSEWHERE`, `file` is the file that runs the command, and
 * `has` is the text of the call in that file.
 */
const ELSEWHERE: Readonly<Record<string, { readonly file: string; readonly has: string }>> = {
  ...Object.fromEntries(
    [
      "npm run -s muster -- get-sanitization-record <id>",
      "npm run -s muster -- print-sanitization-record <id>",
      "npm run -s muster -- export-sanitization-record <id>",
      "npm run -s muster -- verify-record record.json",
      "printf -- '-----BEGIN PUBLIC KEY-----",
      "jq -j .",
      "jq -r .agent.signature record.json",
      "jq -r .node.id record.txt",
      "openssl x509 -in agent.pem",
      "openssl dgst -sha256 -verify agent.pub",
      "openssl pkeyutl -verify -pubin -inkey hub.pub",
      "sha256sum record.txt",
    ].map((command) => [
      command,
      { file: "test/integration/cli/verify-record.test.ts", has: 'file === "docs/sanitization.md"' },
    ]),
  ),
  "npm run muster -- log": {
    file: "test/integration/sign-in/cli-login.test.ts",
    has: 'world.muster(["login", "--with-token"], { home',
  },
  "npm run -s muster -- audit verify --": {
    file: "test/integration/audit/audit-chain.test.ts",
    has: '"audit", "verify", "--file"',
  },
  ...Object.fromEntries(
    [
      "npm run muster -- adopt-machines",
      "npm run muster -- create-adoption-commands",
      "npm run -s muster -- create-adoption-csv",
      "npm run -s muster -- create-adoption-inventory",
      "npm run muster -- create-bootstrap-command c09u42",
      "npm run muster -- decommission-node c09u42",
      "npm run muster -- bind-node-machine c09u43",
      "npm run muster -- unbind-node-machine c09u43",
    ].map((command) => [
      command,
      { file: "test/integration/cli/adoption-commands.test.ts", has: 'file === "docs/adoption.md"' },
    ]),
  ),
  "npm ci && npm run demo": { file: ".ci/run", has: "npm ci && timeout 960 npm run demo" },
  "npm ci && npm test": { file: ".ci/run", has: "step test npm test" },
  "openssl pkeyutl -verify": {
    file: "test/packages/packages.test.ts",
    has: '["pkeyutl", "-verify", "-pubin", "-inkey", "muster-release.pub.pem", "-rawin", "-in", "SHA256SUMS"]',
  },
  "openssl pkey -pubin": {
    file: "test/packages/packages.test.ts",
    has: "openssl pkey -pubin -in muster-release.pub.pem -outform DER | sha256sum",
  },
  "npm run hub -- copy-secrets": {
    file: "test/integration/sites/copy-secrets.test.ts",
    has: '["copy-secrets", "--to", to]',
  },
  ...Object.fromEntries(
    ["npm run muster -- onboard --file", "npm run muster -- adopt dc1 --file"].map((command) => [
      command,
      { file: "test/integration/cli/imports.test.ts", has: "--file" },
    ]),
  ),
  ...Object.fromEntries(
    ["npm run hub -- backup", "npm run hub -- restore", "mkdir -p -m 700", "cp -p "].map((command) => [
      command,
      { file: "test/integration/hub/operate-guide.test.ts", has: 'file === "docs/operate.md"' },
    ]),
  ),
  ...Object.fromEntries(
    ["MUSTER_TRACES_URL", "MUSTER_TRACES_HEADERS_FILE"].map((name) => [
      `${name}=`,
      { file: "test/e2e/metrics.test.ts", has: `${name}: ` },
    ]),
  ),
  "authorization: Bearer TOKEN": { file: "test/e2e/metrics.test.ts", has: "`authorization: Bearer $" },
  "npm run hub -- migrate": {
    file: "test/integration/hub/restricted-role.test.ts",
    has: 'runHubCommand(["migrate"], ',
  },
  'path "kv/data/*"': {
    file: "test/support/vault-under-test.ts",
    has: '/data/*`]: ["create", "update", "read"]',
  },
  'path "kv/metadata/*"': { file: "test/support/vault-under-test.ts", has: '/metadata/*`]: ["delete"]' },
};
/** Documented commands that no test runs, each with the reason. Each key is the beginning of such commands. */
const NOWHERE: Readonly<Record<string, string>> = {
  "systemd-run --pipe --wait":
    "needs the hub's package in a system that systemd has booted; the boots install the agent alone",
  "ansible-playbook -i hosts.yml": "Ansible is in no registry that the tests use",
  "vault server -dev": "Vault is in no registry that the tests use",
  "VAULT_ADDR=http://127.0.0.1:8200": "needs a running Vault, which the tests do not have",
  "vault kv": "needs a running Vault, which the tests do not have",
};
/** The npm scripts that the documents name, each with the file that runs the script or the reason why no test runs it. */
const SCRIPTS: Readonly<Record<string, { readonly file: string; readonly has: string } | string>> = {
  muster: { file: "test/integration/cli/documented-commands.test.ts", has: "hub/cli/main.ts" },
  hub: { file: "test/support/hub-command.ts", has: "hub/main.ts" },
  dev: "is the hub under Node's own watch; every suite starts the hub",
  fix: "writes into the checkout what check:format would refuse",
  demo: { file: ".ci/run", has: "npm run demo -- --exit" },
  check: { file: ".ci/run", has: "npm run check" },
  "check:boundaries": { file: "package.json", has: "npm run check:types && npm run check:boundaries" },
  "check:citations": { file: "package.json", has: "npm run check:unused && npm run check:citations" },
  "check:rules": { file: "package.json", has: "npm run check:code && npm run check:rules" },
  "test:all": { file: "test/rotation.test.ts", has: 'chosen("all"' },
  "test:boot": { file: ".ci/run", has: "npm run test:boot" },
  "test:page": { file: ".ci/run", has: "npm run test:page" },
  "db:generate": { file: ".ci/run", has: "npm run --silent db:generate" },
  openapi: { file: "test/openapi.test.ts", has: "openApiDocument(" },
  asyncapi: { file: "test/openapi.test.ts", has: "asyncApiDocument(" },
  package: { file: "test/packages/packages.test.ts", has: "packaging/main.ts" },
  "test:validation": "needs NVIDIA's suite; nico-facade.test.ts proves the contract of that suite",
  "test:fidelity": "needs answers that were recorded of a real MAAS",
  bench: "measures for longer than all suites take",
  "upgrade:record": "is for a release; its records are loaded by test/integration/hub/upgrade.test.ts",
  screenshots: "draws pictures, which are committed; test/page opens the same screens",
  "lockfile:complete": "asks npm's registry for packages of other platforms",
};

const NO_JQ = (await execa("jq", ["--version"], { reject: false })).exitCode !== 0;
if (NO_JQ) process.stderr.write("SKIPPED: jq is not installed (Debian package jq)\n");

const beginning = <T>(of: Readonly<Record<string, T>>, command: string): T | undefined =>
  Object.entries(of).find(([begins]) => command.startsWith(begins))?.[1];
const isTyped = ({ command }: { command: string }): boolean =>
  beginning(ELSEWHERE, command) === undefined && beginning(NOWHERE, command) === undefined;

let api: ApiHarness;
let rig: GatewayRig;
let url: string;
let folder: string;
let node = "";
let reportToken = "";
beforeAll(async () => {
  api = await startApi();
  rig = await GatewayRig.start({}, api.database);
  url = await api.listen();
  folder = mkdtempSync(join(tmpdir(), "muster-documented-"));
  await api.ask("POST", "/api/v1/admin/skus", { id: "h100", gpu_vendor: "nvidia", gpus_total: 8 });
  const host = { hostname: "c07u41", sku_id: "h100", region_code: "eu-1", onboarding_mode: "manual" };
  node = (await api.ask("POST", "/api/v1/admin/nodes", host)).body.node_id;
  const { pool } = api.database.database;
  await pool.query("update nodes set status = 'active', generation = 2 where id = $1", [node]);
  const free = await api.ask("POST", "/api/v1/admin/nodes", { ...host, hostname: "c08u41" });
  await pool.query("update nodes set status = 'active' where id = $1", [free.body.node_id]);
  await api.database.database.inTx((tx) => makeSchedulable(tx, free.body.node_id));
  const host7 = { hostname: "c07u42", ipmi_ip: "10.0.7.42" };
  const booted = { type: "os.booted", status: "True", reason: "R", message: "m", observed_at: "2026-01-01T12:00:00Z" };
  const files = {
    "rack-7.json": { site_id: "dc1", profile_id: "default", sku_id: "h100", nodes: [host7] },
    "rack-7-leaves.json": {
      site_id: "dc1",
      operation: { mode: "drain", reason: "the rack moves" },
      filter: { hostname_prefix: "c07" },
    },
    "rack-7-cordon.json": {
      site_id: "dc1",
      action: { verb: "cordon", reason: "the rack moves" },
      filter: { hostname_prefix: "c07" },
    },
    "roce.json": { items: [{ hostname: "c07u41", interface: "ens1np0", ipv4_cidr: "172.30.0.1/31" }] },
    "power.json": { user: "root", pass: "a-login-of-no-bmc" },
    "signal.json": { signal_id: "0b0c63b4-7a39-4b58-9d13-3f1c83a7a1fe", generation: 2, conditions: [booted] },
  };
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), JSON.stringify(content));
  writeFileSync(join(folder, "fleet.yaml"), "kind: sku\nid: h200\ngpu_vendor: nvidia\ngpus_total: 8\n");
  writeFileSync(join(folder, "rows.csv"), "hostname,interface,ipv4_cidr\nc07u41,ens1np0,172.30.0.1/31\n");
  writeFileSync(join(folder, "token"), "consumer:token:secret-of-no-region\n");
  writeFileSync(join(folder, "alice.pub"), `${SSH_KEY}\n`);
  writeFileSync(join(folder, "password"), "a password of no host 1!\n");
  writeFileSync(join(folder, "hub-ca.pem"), rig.ca.caPem);
  mkdirSync(join(folder, ".muster/hub"), { recursive: true });
  writeFileSync(join(folder, ".muster/hub/admin-token"), api.admin);
});
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  await rig?.listener.close();
  await api.close();
});

/** In the test's shell, `npm run muster` and `muster` call the repository's command line with the test's hub. */
const typed = (command: string) =>
  execa(
    "bash",
    [
      "-euc",
      `muster() { "$TEST_NODE" "$TEST_CLI" "$@"; }
       npm() { while [ "$1" != muster ]; do shift; done; shift 2; muster "$@"; }
       curl() { timeout "$TEST_STREAM_SECONDS" curl --fail-with-body "$@" || [ "$?" -eq 124 ]; }
       uuidgen() { cat /proc/sys/kernel/random/uuid; }
       ${command
         .replace(/http:\/\/(127\.0\.0\.1|hub):8480/g, url)
         .replace("https://hub.example:8481", `https://127.0.0.1:${rig.listener.port}`)
         .replaceAll(/<(node )?id>/g, "$NODE")}`,
    ],
    {
      cwd: folder,
      reject: false,
      stdin: "ignore",
      env: {
        HOME: folder,
        MUSTER_URL: url,
        MUSTER_TOKEN: api.admin,
        T: api.admin,
        TOKEN: command.includes("phone-home") ? reportToken : api.admin,
        NODE: node,
        TEST_NODE: process.execPath,
        TEST_CLI: join(REPOSITORY, "hub/cli/main.ts"),
        TEST_STREAM_SECONDS: command.includes("-N") ? "2" : "60",
      },
    },
  );

async function mustRun(command: string): Promise<string> {
  const { exitCode, stdout, stderr } = await typed(command);
  const said = exitCode === 0 ? { stdout: "", stderr: "" } : { stdout, stderr };
  expect({ exitCode, ...said }).toEqual({ exitCode: 0, stdout: "", stderr: "" });
  return stdout;
}

/** Carries out the steps that the docs describe in words between two documented commands. */
async function prepare(command: string): Promise<void> {
  const { pool } = api.database.database;
  if (command.includes("phone-home"))
    reportToken = (await api.ask("POST", `/api/v1/admin/nodes/${node}/report-token`)).body.token;
  if (command.includes("--source restore")) await pool.query(RESTORE_OVERRIDE, [node]);
  for (const prepareOf of [prepareRepair, prepareInstance]) await prepareOf(api, command);
  if (!command.includes("list-onboardings") || command.includes("failed_manual_intervention")) return;
  const [site] = (await api.ask("GET", "/api/v1/admin/maas-sites")).body.items;
  const selectors = { site_id: site.id, profile_id: site.default_profile_id, sku_id: "h100" };
  const credentials = {
    maas_token: "a:b:c",
    power: { user: "u", pass: "p" },
    deploy_password: "a long password 1!",
  };
  await api.ask("POST", `/api/v1/admin/maas-sites/${site.id}/credentials`, credentials);
  const made = await api.ask("POST", "/api/v1/admin/onboardings", {
    ...selectors,
    hostname: "c07u41",
    ipmi_ip: "10.0.7.41",
  });
  expect(made.status, JSON.stringify(made.problem)).toBe(202);
  await pool.query(
    "update workflows set status = 'failed_manual_intervention', failure_class = 'hardware_mismatch', failure_code = 'boss_disk_missing' where id = $1",
    [made.body.onboarding_id],
  );
}

describe("the commands in the documents", () => {
  it("all run here or in another file, or have a reason not to run", () => {
    expect(COMMANDS.length).toBeGreaterThan(20);
    const known = /^(npm run (-s )?muster -- |curl |\(umask |jq |T=)/;
    expect(COMMANDS.filter((one) => isTyped(one) && !known.test(one.command))).toEqual([]);
    for (const { file, has } of Object.values(ELSEWHERE)) expect(readOf(file), file).toContain(has);
    for (const begins of [...Object.keys(ELSEWHERE), ...Object.keys(NOWHERE)])
      expect(
        COMMANDS.some(({ command }) => command.startsWith(begins)),
        `${begins} is in no document`,
      ).toBe(true);
  });

  it.each(COMMANDS.filter((one) => isTyped(one) && !(NO_JQ && one.command.startsWith("jq "))))(
    "$file: $command",
    async ({ command }) => {
      await prepare(command);
      await mustRun(command);
    },
  );
});

describe("the bodies in the documents", () => {
  const power = { user: "root", pass: "pw" };
  const host = { hostname: "c07u49", sku_id: "h100", region_code: "eu-1" };
  const first = async (list: string) => (await api.ask("GET", `/api/v1/admin/${list}`)).body.items[0].id;
  const replay = async (body: object) =>
    api.ask("POST", `/api/v1/admin/webhooks/${await first("webhooks")}/replay`, body);
  const cursor = async () => (await api.ask("GET", "/api/v1/admin/events?limit=1")).body.items[0].cursor;
  /** The documented request bodies, each with the function that sends the body and adds fields that the document leaves out. */
  const SENT: Readonly<Record<string, (json: Record<string, unknown>) => Promise<{ status: number; body: unknown }>>> =
    {
      '{"dead": true}': replay,
      '{"cursor": "..."}': async () => replay({ cursor: await cursor() }),
      '"driver": "redfish"': async (json) =>
        api.ask("POST", `/api/v1/admin/maas-sites/${await first("maas-sites")}/credentials`, {
          power: { ...power, ...json },
        }),
      '"onboarding_mode": "manual"': (json) => api.ask("POST", "/api/v1/admin/nodes", { ...host, ...json }),
      '"secret_store":"ok"': async (json) => {
        const answer = await api.ask("GET", "/readyz");
        expect(answer.body).toMatchObject(json);
        return answer;
      },
    };
  const bodies = found(/`(\{?"\w+": ?[^`]*)`/g).map(({ file, match: [, body = ""] }) => ({ file, body }));

  it("are all sent", () => {
    expect(bodies.map(({ body }) => body).toSorted()).toEqual(Object.keys(SENT).toSorted());
  });

  it.each(bodies)("$file: $body", async ({ body }) => {
    const { status, body: answer } = (await SENT[body]?.(JSON.parse(body.startsWith("{") ? body : `{${body}}`))) ?? {};
    expect(status, JSON.stringify(answer)).toBeLessThan(300);
  });
});

describe("the commands in the help", () => {
  const operations = operationsOf(openApiDocument(ROUTES));

  it("of the command line work", async () => {
    const help = await mustRun("muster --help");
    const listed = [...help.matchAll(/^ {2}([a-z-]+) .*/gm)].map(([, name]) => name);
    expect(listed).toEqual([...VERB_NAMES, ...Object.keys(OWN)]);
    for (const command of [
      "muster get-node c07u41 --output json",
      "muster help get nodes",
      "muster help operations",
      "muster help",
      "muster help diagnostics",
      "muster help verify-record",
      "muster help login",
      "muster help audit",
      "muster diagnostics --output help.json",
    ])
      await mustRun(command);
    expect(await mustRun("muster help list-nodes")).toBe(await mustRun("muster list-nodes --help"));
  });

  it("of each command are its own line and no other", () => {
    const others = /muster |npm run |curl /;
    for (const operation of operations) {
      const [line = "", ...rest] = helpText(operation).split("\n");
      expect(line).toBe(`muster ${operation.command}${operation.arguments.map(({ name }) => ` <${name}>`).join("")}`);
      expect(rest.filter((one) => others.test(one))).toEqual([]);
    }
  });

  it("of the hub run in another test", () => {
    const commands = [...USAGE.matchAll(/npm run .*/g)].map(([command]) => command);
    expect(commands.map((command) => beginning(ELSEWHERE, command)?.file)).toEqual([
      "test/integration/sites/copy-secrets.test.ts",
    ]);
  });

  it("that are named without arguments exist", () => {
    const named = found(/`muster ([a-z-]+)`/g).map(({ match: [, name = ""] }) => name);
    expect(named).toContain("clear-node-reports");
    const known = [...operations.map(({ command }) => command), ...VERB_NAMES, ...Object.keys(OWN), "help"];
    expect(named.filter((name) => !known.includes(name))).toEqual([]);
  });
});

describe("names in the documents", () => {
  it("of scripts exist, and each script runs somewhere or has a reason not to", () => {
    const named = new Set(found(/npm run (?:-s )?([a-z][a-z:]*)/g).map(({ match: [, name = ""] }) => name));
    expect([...named].filter((name) => !(name in manifest.scripts))).toEqual([]);
    expect([...named].toSorted()).toEqual(Object.keys(SCRIPTS).toSorted());
    for (const by of Object.values(SCRIPTS)) if (typeof by !== "string") expect(readOf(by.file)).toContain(by.has);
  });

  it("of operations exist", () => {
    const { paths } = openApiDocument(ROUTES) as { paths: Record<string, Record<string, unknown>> };
    const shapes = Object.entries(paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path.replace(/\{\w+\}/g, "{}")}`),
    );
    const named = found(/`(GET|POST|PATCH|DELETE) (\/api\/v1\/[^`? ]*)/g);
    expect(named.length).toBeGreaterThan(5);
    const asked = named.map(({ file, match }) => ({
      file,
      shape: `${match[1]} ${(match[2] ?? "").replace(/\{\w+\}|<[^>]+>/g, "{}").replace(/[.]{3}$/, "")}`,
    }));
    expect(asked.filter(({ shape }) => !shapes.includes(shape))).toEqual([]);
  });
});
