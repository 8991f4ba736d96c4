/**
 * Runs NVIDIA's suite ai-cloud-validation, unmodified, against a hub with a simulated site (docs/nico.md). The site is the demo's: its first host has had a
 * tenant, and gets another one. The exit status is 0 if every check passed or was skipped by the suite, 1 otherwise, and 2 if the suite is not there.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseXml, type XmlElement } from "@rgrove/parse-xml";
import { SSH_KEY } from "../support/allocatable-node.ts";
import { until } from "../support/until.ts";

const ORG = "acme";
const CONFIG = "isvctl/configs/providers/nico/config";
/** Checks that a site without DPUs and without a reader of BMC sensors cannot pass, and that fail in place of being skipped. */
const LEFT_OUT = ["--exclude-label", "dpu", "--", "-k", "not OobFailureDetectionCheck"];
const LONGEST_MS = 600_000;

interface Suite {
  readonly source: string;
  readonly python: string;
}

function findSuite(): Suite | null {
  const source = process.env["MUSTER_TEST_VALIDATION_SUITE"];
  const python = process.env["MUSTER_TEST_VALIDATION_PYTHON"];
  if (source === undefined || python === undefined) return null;
  return existsSync(join(source, CONFIG)) && existsSync(python) ? { source, python } : null;
}

class Site {
  readonly #base: string;
  readonly #token: string;
  constructor(base: string, token: string) {
    this.#base = base;
    this.#token = token;
  }
  async ask(method: string, path: string, body?: unknown, etag?: string): Promise<{ json: never; etag: string }> {
    const response = await fetch(`${this.#base}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${this.#token}`,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...(etag === undefined ? {} : { "if-match": etag }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return { json: JSON.parse(text) as never, etag: response.headers.get("etag") ?? "" };
  }
}

interface Node {
  readonly id: string;
  readonly site_id: string;
  readonly hostname: string;
}

/** Says in which rack each host stands, gives the first host to a tenant, and plans a maintenance of it. Returns the id of the site. */
async function prepare(site: Site): Promise<string> {
  const nodes = ((await site.ask("GET", "/api/v1/admin/nodes?sort=created_at")).json as { items: Node[] }).items;
  const [first] = nodes.toSorted((a, b) => a.hostname.localeCompare(b.hostname));
  if (first === undefined) throw new Error("the site has no node");
  for (const [index, { id }] of nodes.entries()) {
    const { etag } = await site.ask("GET", `/api/v1/admin/nodes/${id}`);
    const location = { room: "hall 1", rack: `rack ${index % 3}`, unit: index + 1 };
    await site.ask("PATCH", `/api/v1/admin/nodes/${id}`, { location }, etag);
  }
  const order = { node_id: first.id, tenant: ORG, login_user: "grace", ssh_keys: [SSH_KEY] };
  const { id } = (await site.ask("POST", "/api/v1/admin/allocations", order)).json as { id: string };
  await until("the tenant's account", async () => {
    const allocation = (await site.ask("GET", `/api/v1/admin/allocations/${id}`)).json as { status: string };
    return allocation.status === "active" || undefined;
  });
  const reason = "A fan is replaced on Monday";
  await site.ask("POST", `/api/v1/admin/nodes/${first.id}/cordon`, { reason });
  return first.site_id;
}

interface Check {
  readonly name: string;
  readonly result: "passed" | "skipped" | "failed";
  readonly why: string;
}

const isElement = (node: unknown): node is XmlElement => (node as XmlElement).type === "element";
const below = (element: XmlElement): XmlElement[] =>
  element.children.filter(isElement).flatMap((child) => [child, ...below(child)]);

/** Reads the checks of a JUnit report; a check's parts, which have two colons in their names, are no checks of their own. */
function checksOf(file: string): Check[] {
  const { root } = parseXml(readFileSync(file, "utf8"));
  if (root === null) throw new Error(`${file} is empty`);
  return below(root)
    .filter(({ name, attributes }) => name === "testcase" && !attributes["name"]?.includes("::"))
    .map((element) => {
      const said = element.children.filter(isElement).find(({ name }) => /^(failure|error|skipped)$/.test(name));
      const why = (said?.attributes["message"] ?? "").split("\n")[0]?.slice(0, 160) ?? "";
      const result = said === undefined ? "passed" : said.name === "skipped" ? "skipped" : "failed";
      return { name: element.attributes["name"] ?? "", result, why };
    });
}

async function runSuite(suite: Suite, part: string, environment: NodeJS.ProcessEnv, more: string[]): Promise<Check[]> {
  const out = mkdtempSync(join(tmpdir(), "muster-validation-"));
  const report = join(out, "report.xml");
  const options = ["--no-user-config", "--no-upload", "-f", `${CONFIG}/${part}.yaml`, "--junitxml", report];
  const child = spawn(suite.python, ["-m", "isvctl.main", "test", "run", ...options, ...more], {
    cwd: suite.source,
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, ...environment },
    timeout: LONGEST_MS,
  });
  const log: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk: Buffer) => log.push(chunk));
  await new Promise((ended) => child.on("close", ended));
  try {
    if (!existsSync(report))
      throw new Error(`${part} wrote no report:\n${Buffer.concat(log).toString().slice(-4_000)}`);
    return checksOf(report);
  } finally {
    rmSync(out, { recursive: true, force: true });
  }
}

/** Starts the demo, and waits until its first host has had a tenant and is clean again. */
async function startDemo(folder: string): Promise<{ demo: ChildProcess; site: Site }> {
  const demo = spawn(process.execPath, ["test/demo/main.ts", "--state", folder], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, MUSTER_NICO_ORG: ORG },
  });
  let told = "";
  demo.stdout?.on("data", (chunk: Buffer) => {
    told += chunk.toString();
    process.stdout.write(chunk);
  });
  await until("the demo", () => /Ctrl-C stops everything/.test(told) || demo.exitCode !== null || undefined, {
    timeoutMs: LONGEST_MS,
    everyMs: 500,
  });
  const [, base] = /API, console +(\S+)/.exec(told) ?? [];
  if (base === undefined || demo.exitCode !== null) throw new Error("The demo has ended; its output says why.");
  if (!/Verified[.]/.test(told)) throw new Error("The demo showed no turnover, so no check could see a cleaning.");
  return { demo, site: new Site(base, readFileSync(join(folder, "hub", "admin-token"), "utf8").trim()) };
}

async function main(): Promise<number> {
  const suite = findSuite();
  if (suite === null) {
    process.stdout.write(
      "Not run: NVIDIA's suite is not here. Set MUSTER_TEST_VALIDATION_SUITE to its checkout and MUSTER_TEST_VALIDATION_PYTHON to a Python with its packages.\n",
    );
    return 2;
  }
  const folder = join(process.cwd(), ".muster", "validation");
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const { demo, site } = await startDemo(folder);
  try {
    const siteId = await prepare(site);
    const token = readFileSync(join(folder, "hub", "admin-token"), "utf8").trim();
    const { http } = JSON.parse(readFileSync(join(folder, "ports.json"), "utf8")) as { http: number };
    const environment = {
      PYTHONPATH: ["isvctl", "isvtest", "isvreporter"].map((one) => join(suite.source, one, "src")).join(":"),
      PYTHONDONTWRITEBYTECODE: "1",
      NICO_API_BASE: `http://127.0.0.1:${http}/v2/org`,
      NICO_ORGANIZATION: ORG,
      NICO_SITE_ID: siteId,
      NICO_API_NAME: "nico",
      NICO_BEARER_TOKEN: token,
    };
    const checks = [
      ...(await runSuite(suite, "control-plane", environment, [])),
      ...(await runSuite(suite, "bare_metal", environment, LEFT_OUT)),
    ];
    const of = (result: Check["result"]) => checks.filter((check) => check.result === result);
    for (const { name, result, why } of [...of("skipped"), ...of("passed"), ...of("failed")])
      process.stdout.write(`${result.padEnd(8)} ${name}${why === "" ? "" : `: ${why}`}\n`);
    process.stdout.write(
      `\n${of("passed").length} passed, ${of("failed").length} failed, ${of("skipped").length} skipped by the suite; ${LEFT_OUT.join(" ")}\n`,
    );
    return of("failed").length === 0 && of("passed").length > 0 ? 0 : 1;
  } finally {
    demo.kill("SIGINT");
    await new Promise((ended) => demo.on("close", ended));
  }
}

process.exit(await main());
