/** Whatever README and docs tell a reader to type or to send is typed and sent here, as it stands there; what runs elsewhere is said by name. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openApiDocument } from "../../hub/http/openapi.ts";
import { ROUTES } from "../../hub/http/routes/index.ts";
import manifest from "../../package.json" with { type: "json" };
import { type ApiHarness, startApi } from "../support/api-harness.ts";

const REPOSITORY = new URL("../..", import.meta.url).pathname;
const read = (file: string): string => readFileSync(join(REPOSITORY, file), "utf8");
const FILES = [
  "README.md",
  ...readdirSync(join(REPOSITORY, "docs"))
    .filter((name) => name.endsWith(".md"))
    .map((name) => `docs/${name}`),
];

/** Blocks that show something and are typed by nobody, by how they begin. */
const SHOWN = [
  /^Starting a hub with its embedded database/,
  /[┌│└├]/,
  /^stateDiagram/,
  /^#cloud-config/,
  /^\[Service\]/,
];
/** Lines that follow a command and are what it prints. */
const PRINTED = [
  /^hub-1\.json: /,
  /^Left out, as/,
  /^ {2}workflows: /,
  /^It holds no secret/,
  /^\{"signal_id"/,
  /^\{"node_id":/,
];
/** What cannot be typed here, by how it begins, and who runs it. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  "npm ci && npm run demo": ".ci/run",
  "npm ci && npm test": ".ci/run",
  "openssl pkeyutl -verify": "test/packages/packages.test.ts",
  "openssl pkey -pubin": "test/packages/packages.test.ts",
  "npm run hub -- copy-secrets": "test/integration/copy-secrets.test.ts",
  "systemd-run --pipe --wait": "test/integration/copy-secrets.test.ts",
  'path "kv/data/*"': "test/fakes/vault/vault.test.ts",
  'path "kv/metadata/*"': "test/fakes/vault/vault.test.ts",
  "vault server -dev": "test/support/vault-under-test.ts",
  "VAULT_ADDR=http://127.0.0.1:8200": "test/support/vault-under-test.ts",
  "jq -c '.sections.log.data.lines[]'": "test/integration/diagnostics.test.ts",
};

/** Fenced blocks, and those that are set in by four more columns than what is around them. */
function blocksOf(file: string): string[] {
  const blocks: string[] = [];
  let block: { fence: boolean; indent: number; lines: string[] } | null = null;
  const end = (): void => {
    if (block?.lines.some((line) => line.trim() !== "") === true) blocks.push(block.lines.join("\n").trimEnd());
    block = null;
  };
  for (const line of read(file).split("\n")) {
    const fence = /^( *)```/.exec(line);
    if (fence !== null) {
      const opens = block === null || !block.fence;
      end();
      if (opens) block = { fence: true, indent: fence[1]?.length ?? 0, lines: [] };
    } else if (block?.fence === true) block.lines.push(line.slice(block.indent));
    else if (/^ {4}\S/.test(line) && (block !== null || previousWasBlank)) {
      block ??= { fence: false, indent: 4, lines: [] };
      block.lines.push(line.slice(4));
    } else if (block !== null && /^ {4,}/.test(line)) block.lines.push(line.slice(4));
    else if (line.trim() !== "") end();
    previousWasBlank = line.trim() === "";
  }
  end();
  return blocks;
}
let previousWasBlank = true;

/** Whether a shell would read on: within quotes, or after a backslash. Comments hold apostrophes. */
function goesOn(text: string): boolean {
  let quote = "";
  let comment = false;
  for (const [at, letter] of [...text].entries()) {
    if (letter === "\n") comment = false;
    else if (comment) continue;
    else if (quote === "" && letter === "#" && /\s/.test(text[at - 1] ?? " ")) comment = true;
    else if (quote === letter) quote = "";
    else if (quote === "" && (letter === "'" || letter === '"')) quote = letter;
  }
  return quote !== "" || text.endsWith("\\");
}

/** Commands of a block, each with the lines that it goes on in. */
function commandsOf(block: string): string[] {
  if (SHOWN.some((shown) => shown.test(block))) return [];
  const commands: string[] = [];
  let open = "";
  for (const line of block.split("\n")) {
    if (open === "" && PRINTED.some((printed) => printed.test(line))) continue;
    open = open === "" ? line : `${open}\n${line}`;
    if (goesOn(open)) continue;
    if (open.trim() !== "") commands.push(open);
    open = "";
  }
  return open === "" ? commands : [...commands, open];
}

const COMMANDS = FILES.flatMap((file) =>
  blocksOf(file)
    .flatMap(commandsOf)
    .map((command) => ({ file, command })),
);
const elsewhereOf = (command: string): string | undefined =>
  Object.entries(ELSEWHERE).find(([begins]) => command.startsWith(begins))?.[1];

describe("what the documents tell a reader to type", () => {
  let api: ApiHarness;
  let url: string;
  let folder: string;
  let node = "";

  beforeAll(async () => {
    api = await startApi();
    url = await api.listen();
    folder = mkdtempSync(join(tmpdir(), "muster-documented-"));
    await api.ask("POST", "/api/v1/admin/skus", { id: "h100", gpu_vendor: "nvidia", gpus_total: 8 });
    const host = { hostname: "c07u41", sku_id: "h100", region_code: "eu-1", onboarding_mode: "manual" };
    node = (await api.ask("POST", "/api/v1/admin/nodes", host)).body.node_id;
    const { pool } = api.database.database;
    await pool.query("update nodes set status = 'active', generation = 2 where id = $1", [node]);
    const host7 = { hostname: "c07u42", ipmi_ip: "10.0.7.42" };
    const files = {
      "rack-7.json": { site_id: "dc1", profile_id: "default", sku_id: "h100", nodes: [host7] },
      "roce.json": { items: [{ hostname: "c07u41", interface: "ens1np0", ipv4_cidr: "172.30.0.1/31" }] },
      "power.json": { user: "root", pass: "a-login-of-no-bmc" },
    };
    for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), JSON.stringify(content));
    writeFileSync(join(folder, "token"), "consumer:token:secret-of-no-region\n");
    writeFileSync(join(folder, "password"), "a password of no host 1!\n");
  });
  afterAll(async () => {
    rmSync(folder, { recursive: true, force: true });
    await api.close();
  });

  /** A shell in which `npm run muster` is the command line of this repository, and the hub is the test's. */
  const typed = (command: string) =>
    execa(
      "bash",
      [
        "-euc",
        `npm() { while [ "$1" != muster ]; do shift; done; shift 2; "$TEST_NODE" "$TEST_CLI" "$@"; }
         curl() { timeout "$TEST_STREAM_SECONDS" curl --fail-with-body "$@" || [ "$?" -eq 124 ]; }
         uuidgen() { cat /proc/sys/kernel/random/uuid; }
         ${command.replace(/http:\/\/(127\.0\.0\.1|hub):8480/g, url).replaceAll("<node id>", "$NODE")}`,
      ],
      {
        cwd: folder,
        reject: false,
        stdin: "ignore",
        env: {
          MUSTER_URL: url,
          MUSTER_TOKEN: api.admin,
          T: api.admin,
          TOKEN: api.admin,
          NODE: node,
          TEST_NODE: process.execPath,
          TEST_CLI: join(REPOSITORY, "hub/cli/main.ts"),
          TEST_STREAM_SECONDS: command.includes("-N") ? "2" : "60",
        },
      },
    );

  /** What stands between two commands of the documents and is told there by words. */
  async function prepare(command: string): Promise<void> {
    const { pool } = api.database.database;
    if (command.includes("list-onboardings")) {
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
  }

  it("is all run, here or by whom it is said", () => {
    expect(COMMANDS.length).toBeGreaterThan(20);
    const known = /^(npm run (-s )?muster -- |curl |\(umask )/;
    expect(COMMANDS.filter(({ command }) => !known.test(command) && elsewhereOf(command) === undefined)).toEqual([]);
    for (const file of Object.values(ELSEWHERE)) expect(existsSync(join(REPOSITORY, file)), file).toBe(true);
    for (const begins of Object.keys(ELSEWHERE))
      expect(
        COMMANDS.some(({ command }) => command.startsWith(begins)),
        `${begins} is in no document`,
      ).toBe(true);
  });

  it.each(COMMANDS.filter(({ command }) => elsewhereOf(command) === undefined))(
    "$file: $command",
    async ({ command }) => {
      await prepare(command);
      const { exitCode, stdout, stderr } = await typed(command);
      expect({ exitCode, stdout: exitCode === 0 ? "" : stdout, stderr: exitCode === 0 ? "" : stderr }).toEqual({
        exitCode: 0,
        stdout: "",
        stderr: "",
      });
    },
  );
});

describe("what the documents name in passing", () => {
  const texts = FILES.map((file) => ({ file, text: read(file) }));
  const found = (pattern: RegExp) =>
    texts.flatMap(({ file, text }) => [...text.matchAll(pattern)].map((match) => ({ file, match })));

  it("as a script is one", () => {
    const named = found(/npm run (?:-s )?([a-z][a-z:]*)/g);
    expect(named.length).toBeGreaterThan(10);
    expect(named.filter(({ match }) => !((match[1] ?? "") in manifest.scripts))).toEqual([]);
  });

  it("as an operation is one", () => {
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
