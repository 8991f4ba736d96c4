/** NVIDIA's suite ai-cloud-validation, unmodified, as a program that writes a JUnit report. */
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseXml, type XmlElement } from "@rgrove/parse-xml";

/** The folder of the configurations with NVIDIA's own provider for NICo. */
export const NICO_CONFIG = "isvctl/configs/providers/nico/config";
const LONGEST_MS = 3_600_000;

export interface Suite {
  readonly source: string;
  readonly python: string;
}

export function findSuite(): Suite | null {
  const source = process.env["MUSTER_TEST_VALIDATION_SUITE"];
  const python = process.env["MUSTER_TEST_VALIDATION_PYTHON"];
  if (source === undefined || python === undefined) return null;
  return existsSync(join(source, NICO_CONFIG)) && existsSync(python) ? { source, python } : null;
}

export interface Check {
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

/** Runs one configuration of the suite, and returns its checks. */
export async function runSuite(
  suite: Suite,
  config: string,
  environment: NodeJS.ProcessEnv,
  more: readonly string[] = [],
): Promise<Check[]> {
  const out = mkdtempSync(join(tmpdir(), "muster-validation-"));
  const report = join(out, "report.xml");
  const options = ["--no-user-config", "--no-upload", "-f", config, "--junitxml", report];
  const child = spawn(suite.python, ["-m", "isvctl.main", "test", "run", ...options, ...more], {
    cwd: suite.source,
    stdio: ["ignore", "pipe", "pipe"],
    env: {
      ...process.env,
      PYTHONPATH: ["isvctl", "isvtest", "isvreporter"].map((one) => join(suite.source, one, "src")).join(":"),
      PYTHONDONTWRITEBYTECODE: "1",
      ...environment,
    },
    timeout: LONGEST_MS,
  });
  const log: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk: Buffer) => log.push(chunk));
  await new Promise((ended) => child.on("close", ended));
  try {
    if (!existsSync(report))
      throw new Error(`${config} wrote no report:\n${Buffer.concat(log).toString().slice(-4_000)}`);
    return checksOf(report);
  } finally {
    rmSync(out, { recursive: true, force: true });
  }
}

/** Prints the checks and their number, and returns true if at least one has passed and none has failed. */
export function printChecks(title: string, checks: readonly Check[], leftOut: string): boolean {
  const of = (result: Check["result"]) => checks.filter((check) => check.result === result);
  process.stdout.write(`\n${title}\n`);
  for (const { name, result, why } of [...of("skipped"), ...of("passed"), ...of("failed")])
    process.stdout.write(`${result.padEnd(8)} ${name}${why === "" ? "" : `: ${why}`}\n`);
  const [passed, failed, skipped] = [of("passed").length, of("failed").length, of("skipped").length];
  process.stdout.write(`${passed} passed, ${failed} failed, ${skipped} skipped by the suite; left out: ${leftOut}\n`);
  return failed === 0 && passed > 0;
}
