import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { builtinModules, stripTypeScriptTypes } from "node:module";
import { tmpdir } from "node:os";
import { basename, dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, describe, expect, it } from "vitest";
import { z } from "zod";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const CODE_FOLDERS = ["agent", "hub", "shared", "cloud-init", "packaging", "test"];
const run = promisify(execFile);
const folders: string[] = [];

afterAll(async () => {
  await Promise.all(folders.map((folder) => rm(folder, { recursive: true, force: true })));
});

/**
 * Only one file of `hub/db/queries` may write a table, so that all rules about the table's rows are in one place. The retention, which deletes old
 * rows of many tables, is exempt from the rule that only one file writes a table. `MORE_WRITERS` lists the tables that several files write, with the
 * reason for each table. Nobody may add tables to `MORE_WRITERS`.
 */
const MORE_WRITERS: Readonly<Record<string, { readonly why: string; readonly files: readonly string[] }>> = {
  nodes: {
    why: "One statement writes the last contact of many agents, into their sessions and their nodes.",
    files: ["hub/db/queries/agent-sessions.ts", "hub/db/queries/nodes.ts"],
  },
  workflows: {
    why: "Leases and moves, stops by verbs, and wake-ups are 300 lines and more; half of the queries wake, and moves do.",
    files: ["hub/db/queries/workflow-stops.ts", "hub/db/queries/workflow-wakes.ts", "hub/db/queries/workflows.ts"],
  },
};

/** Returns the tables that a source text writes through the query builder or through SQL. */
const writtenNames = (text: string): Set<string> =>
  new Set(
    [...text.matchAll(/(?:[.](?:insert|update|delete)[(]|(?:insert into|update|delete from) (?:[$][{])?)(\w+)/g)].map(
      ([, name = ""]) => name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase()),
    ),
  );

/** Patterns of code that was once in several files, each with the only file that may contain it now. */
const ONE_PLACE = [
  { what: "a problem's body", shape: /urn:muster:problem:/, home: "shared/api/errors.ts" },
  { what: "a problem's content type", shape: /"application[/]problem[+]json"/, home: "shared/api/errors.ts" },
  { what: "a cursor", shape: /JSON[.]stringify[(]\w+[)][)][.]toString[(]"base64url"[)]/, home: "hub/db/cursor.ts" },
  { what: "the fields of /proc/PID/stat", shape: /lastIndexOf[(]"[)]"[)]/, home: "agent/system/proc-stat.ts" },
  { what: "the paths of mountinfo", shape: /\[0-7\][{]3[}]/, home: "agent/system/mounts.ts" },
  { what: "a log line", shape: /JSON[.]stringify[(][{] time: /, home: "shared/log.ts" },
];

/**
 * The only files of the agent that read the wall clock, which somebody may step at any moment: for times that people read, and for comparisons with
 * stored times. Deadlines and durations use the monotonic clock (`performance.now()`).
 */
const WALL_CLOCK = [
  "agent/agent.ts",
  "agent/bootstrap-status.ts",
  "agent/gpu/kernel-faults.ts",
  "agent/health/sampler.ts",
  "agent/readiness.ts",
  "agent/system/storage/purge-disk.ts",
];

async function sourceFiles(): Promise<string[]> {
  const perFolder = await Promise.all(
    CODE_FOLDERS.map(async (folder) => {
      const entries = await readdir(join(ROOT, folder), { recursive: true, withFileTypes: true }).catch(() => []);
      return entries
        .filter((entry) => entry.isFile())
        .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)));
    }),
  );
  return perFolder
    .flat()
    .filter((file) => /[.](tsx?|mjs|sh)$/.test(file) && !/(^|\/)([.]muster|node_modules)\//.test(file));
}

describe("every source file", async () => {
  const files = await sourceFiles();

  it("is found by these tests", () => {
    expect(files).toContain("hub/db/tx.ts");
  });

  it("can be read by Node.js, whose parser accepts less than the compiler's", async () => {
    const faults = await Promise.all(
      files
        .filter((file) => file.endsWith(".ts"))
        .map(async (file) => {
          const text = await readFile(join(ROOT, file), "utf8");
          try {
            stripTypeScriptTypes(text);
            return null;
          } catch (error) {
            return `${file}: ${(error as Error).message}`;
          }
        }),
    );
    expect(faults.filter((fault) => fault !== null)).toEqual([]);
  });

  it("has at most 400 lines", async () => {
    const lengths = await Promise.all(
      files.map(async (file) => ({ file, lines: (await readFile(join(ROOT, file), "utf8")).split("\n").length - 1 })),
    );
    expect(lengths.filter(({ lines }) => lines > 400)).toEqual([]);
  });

  it("and its folders have names in kebab-case", () => {
    const kebab = /^[a-z0-9]+(-[a-z0-9]+)*([.](test|fixture|config|error|happy|security))*[.](tsx?|mjs|sh)$/;
    const folder = /^[a-z0-9]+(-[a-z0-9]+)*$/;
    const bad = files.filter(
      (file) =>
        !kebab.test(basename(file)) ||
        !dirname(file)
          .split("/")
          .every((part) => folder.test(part)),
    );
    expect(bad).toEqual([]);
  });

  it("has a name that says what it holds", () => {
    const vague = /(^|[-/.])(utils?|helpers?|common|misc|managers?)([-/.]|$)/;
    expect(files.filter((file) => vague.test(file))).toEqual([]);
  });

  it("of the hub takes advisory locks only through their list", async () => {
    const offenders: string[] = [];
    for (const file of files.filter((name) => name.startsWith("hub/") && name !== "hub/db/advisory-locks.ts")) {
      if (/pg_(try_)?advisory/.test(await readFile(join(ROOT, file), "utf8"))) offenders.push(file);
    }
    expect(offenders).toEqual([]);
  });

  it("of the hub writes a table in one file of hub/db/queries", async () => {
    const hub = files.filter((name) => name.startsWith("hub/") && !name.endsWith(".test.ts"));
    const texts = await Promise.all(
      hub.map(async (file) => ({ file, text: await readFile(join(ROOT, file), "utf8") })),
    );
    const tables = texts.flatMap(({ text }) =>
      [...text.matchAll(/^export const (\w+) = pgTable[(]/gm)].map(([, t = ""]) => t),
    );
    expect(tables).toContain("tasks");
    const written = texts.map(({ file, text }) => ({ file, names: writtenNames(text) }));
    const offenders = tables.flatMap((table) => {
      const writers = written.filter(({ names }) => names.has(table)).map(({ file }) => file);
      const known = MORE_WRITERS[table]?.files;
      const whole = writers.length <= 1 && writers.every((file) => file.startsWith("hub/db/queries/"));
      if (known === undefined) return whole ? [] : writers.map((file) => `${table}: ${file}`);
      // The test reports a file in `MORE_WRITERS` that no longer writes its table.
      const differ = [...writers, ...known].filter((file) => writers.includes(file) !== known.includes(file));
      return differ.map((file) => `${table}: ${file}`);
    });
    expect(offenders).toEqual([]);
  });

  it("of the hub names the statuses of MAAS by their list, in code and in SQL", async () => {
    const numbered =
      /\b(machine|m|seen|named)[.]status\s*(=|<>|[!=]==?|[<>]=?|in)\s*[(]?\d|^const (NEW|READY|DEPLOYED|[A-Z_]*COMMISSIONING) = \d/m;
    for (const planted of ["where m.status = 6", "m.status <> 6", "machine.status === 4", "const NEW = 0;"])
      expect(planted).toMatch(numbered);
    const offenders: string[] = [];
    for (const file of files.filter((name) => name.startsWith("hub/") && !name.includes(".test."))) {
      if (numbered.test(await readFile(join(ROOT, file), "utf8"))) offenders.push(file);
    }
    expect(offenders).toEqual([]);
  });

  it.each(ONE_PLACE)("of production writes $what in one place", async ({ shape, home }) => {
    const production = files.filter(
      (name) => /^(agent|hub|shared)\//.test(name) && !/[.](test|fixture)[.]ts$/.test(name),
    );
    const found: string[] = [];
    for (const file of production) if (shape.test(await readFile(join(ROOT, file), "utf8"))) found.push(file);
    expect(found).toEqual([home]);
  });

  it("of the agent reads the wall clock only if it is on the list", async () => {
    const agent = files.filter((name) => name.startsWith("agent/") && !/[.](test|fixture)[.]ts$/.test(name));
    const found: string[] = [];
    for (const file of agent)
      if (/Date[.]now|new Date[(][)]/.test(await readFile(join(ROOT, file), "utf8"))) found.push(file);
    expect(found.sort()).toEqual(WALL_CLOCK);
  });

  it("has no default export unless a tool requires it", async () => {
    const offenders: string[] = [];
    for (const file of files.filter((name) => !name.startsWith("test/config/") && !name.startsWith("test/support/"))) {
      if (/^export default/m.test(await readFile(join(ROOT, file), "utf8"))) offenders.push(file);
    }
    expect(offenders).toEqual([]);
  });
});

/** Forbidden imports, each with the import rule that must report it and the file in which the test plants it. */
const PLANTED = [
  ["shared/clock.ts", 'import "node:fs";', "shared-is-pure"],
  ["shared/up.ts", 'import "../hub/db/tables.ts";', "shared-is-pure"],
  ["agent/up.ts", 'import "../hub/db/tables.ts";', "agent-imports"],
  ["agent/tasks/delete.ts", 'import "node:child_process";', "only-agent-system-touches-the-host"],
  ["agent/tasks/write.ts", 'import "node:fs/promises";', "only-agent-system-touches-the-host"],
  ["agent/system/ffi.ts", 'import "koffi";', "driver-calls-in-one-folder"],
  ["agent/gpu-memory/open.ts", 'import "../system/gpu-memory/cuda-device.ts";', "driver-calls-on-demand"],
  ["agent/tasks/overwrite.ts", 'import "../system/gpu-memory/perform-overwrite.ts";', "code-of-work-on-demand"],
  ["agent/worker-start.ts", 'import "./system/workers/worker-program.ts";', "code-of-work-on-demand"],
  ["hub/gpu-memory/store.ts", 'import "../db/tables.ts";', "hub-gpu-memory-imports"],
  ["cloud-init/run.ts", 'import "node:child_process";', "cloud-init-is-pure"],
  ["hub/maas/store.ts", 'import type { A } from "../db/tables.ts"; export type B = A;', "hub-maas-imports"],
  ["hub/secrets/store.ts", 'import "../db/tables.ts";', "hub-secrets-imports"],
  ["hub/http/routes/ask.ts", 'import "../../db/orm.ts";', "sql-by-queries"],
  ["hub/workflows/machine/rows.ts", 'import "../../db/schema/nodes.ts";', "tables-by-queries"],
  ["hub/bmc/store.ts", 'import "../db/tables.ts";', "hub-bmc-imports"],
  ["hub/cli/direct.ts", 'import "../db/tables.ts";', "hub-cli-imports"],
  ["hub/http/settings.ts", 'import "../startup/config.ts";', "only-main-reads-config"],
  ["hub/audit/serve.ts", 'import "../http/app.ts";', "people-imports"],
  ["hub/events/serve.ts", 'import "../http/app.ts";', "events-imports"],
  ["hub/allocations/ask.ts", 'import "../maas/client.ts";', "allocations-imports"],
  ["hub/repair/ask.ts", 'import "../maas/client.ts";', "repair-imports"],
  ["hub/power/ask.ts", 'import "../maas/client.ts";', "power-imports"],
  ["hub/watcher/ask.ts", 'import "../maas/client.ts";', "watcher-imports"],
  ["hub/reconciler/rules.ts", 'import "../db/tables.ts";', "rules-are-pure"],
  ["shared/generate.ts", 'import "fast-check";', "no-dev-packages-in-production"],
  ["hub/db/seal.ts", 'import "../secrets/file.ts";', "hub-db-imports"],
  ["hub/db/direct.ts", 'import "drizzle-orm";', "drizzle-by-one-file"],
  ["hub/workflows/engine/machine.ts", 'import "../../maas/client.ts";', "engine-imports"],
  ["hub/workflows/onboarding/stages/deploy.ts", 'import "./commission.ts";', "stages-stand-alone"],
  ["hub/workflows/decommission/stages/erase.ts", 'import "../../../maas/client.ts";', "stage-imports"],
  ["hub/workflows/onboarding/clean.ts", 'import "../decommission/drain.ts";', "workflows-stand-alone"],
  ["hub/workflows/decommission/retire.ts", 'import "../onboarding/deploy.ts";', "decommission-stands-alone"],
  ["hub/workflows/reimage/again.ts", 'import "../onboarding/deploy.ts";', "reimage-knows-no-onboarding"],
  ["hub/workflows/provisioning/place.ts", 'import "../onboarding/deploy.ts";', "provisioning-knows-no-workflow"],
  ["hub/workflows/machine/judge.ts", 'import "../onboarding/deploy.ts";', "machine-knows-no-workflow"],
  ["hub/http/machines.ts", 'import "../maas/client.ts";', "http-imports"],
  ["hub/diagnostics/vault.ts", 'import "../secrets/file.ts";', "diagnostics-imports"],
  ["hub/metrics/counted/rows.ts", 'import "../../db/tables.ts";', "counted-imports"],
  ["hub/metrics/nodes.ts", 'import "../secrets/file.ts";', "metrics-imports"],
  ["hub/nico/serve.ts", 'import "../http/app.ts";', "nico-imports"],
  ["hub/people/serve.ts", 'import "../http/app.ts";', "people-imports"],
  ["hub/copy-secrets/serve.ts", 'import "../http/app.ts";', "hub-commands-imports"],
  ["hub/backup/serve.ts", 'import "../http/app.ts";', "hub-commands-imports"],
  ["hub/sign-in/serve.ts", 'import "../http/app.ts";', "people-imports"],
  ["hub/gateway/start.ts", 'import "../workflows/onboarding/stages/commission.ts";', "gateway-imports"],
  ["hub/node/wake.ts", 'import "../http/app.ts";', "node-imports"],
  ["hub/console/app/direct.tsx", 'import "../../db/tables.ts";', "console-app-imports"],
  ["hub/console/build/rows.ts", 'import "../../db/tables.ts";', "console-build-imports"],
  ["hub/console/serve.ts", 'import "../db/tables.ts";', "console-imports"],
  ["hub/http/app-code.ts", 'import "../console/app/main.tsx";', "console-code-apart"],
  ["hub/maas/again.ts", 'import "../main.ts";', "nobody-imports-main"],
  ["hub/db/fake.ts", 'import "../../test/fake.ts";', "no-test-code-in-production"],
  ["hub/maas/one.ts", 'import "./other.ts";', "no-cycles"],
  ["hub/maas/lost.ts", 'import "./nowhere.ts";', "resolvable"],
  ["shared/dead.ts", "export const dead = 1;", "no-orphans"],
] as const;

const TARGETS = [
  "agent/system/gpu-memory/cuda-device.ts",
  "agent/system/gpu-memory/perform-overwrite.ts",
  "agent/system/workers/worker-program.ts",
  "hub/console/app/main.tsx",
  "hub/startup/config.ts",
  "hub/main.ts",
  "hub/db/orm.ts",
  "hub/db/schema/nodes.ts",
  "hub/db/tables.ts",
  "hub/secrets/file.ts",
  "hub/maas/client.ts",
  "hub/workflows/onboarding/stages/commission.ts",
  "hub/workflows/onboarding/deploy.ts",
  "hub/workflows/decommission/drain.ts",
  "hub/http/app.ts",
  "test/fake.ts",
];

const CruiseResult = z.object({
  summary: z.object({ violations: z.array(z.object({ from: z.string(), rule: z.object({ name: z.string() }) })) }),
});

async function plant(): Promise<string> {
  const root = await mkdtemp(join(tmpdir(), "muster-planted-"));
  folders.push(root);
  const files = [
    ...TARGETS.map((file) => [file, "export type A = 1;"] as const),
    ["hub/maas/other.ts", 'import "./one.ts";'] as const,
    ...PLANTED,
  ];
  for (const [file, text] of files) {
    await mkdir(dirname(join(root, file)), { recursive: true });
    await writeFile(join(root, file), text);
  }
  for (const file of ["tsconfig.json", "package.json", "node_modules", "test/config"]) {
    await symlink(join(ROOT, file), join(root, file));
  }
  return root;
}

/** Expands the groups and alternatives of a regular expression into separate expressions, but keeps lookaheads and character classes. */
function alternativesOf(pattern: string): string[] {
  const open = /(?<!\\)[(](?![?])/.exec(pattern);
  if (open === null) return [pattern];
  let depth = 0;
  const cuts = [open.index];
  for (let at = open.index; at < pattern.length; at += 1) {
    if (pattern[at] === "(") depth += 1;
    if (pattern[at] === ")") depth -= 1;
    if ((pattern[at] === "|" && depth === 1) || (pattern[at] === ")" && depth === 0)) cuts.push(at);
    if (depth === 0) break;
  }
  const end = (cuts.at(-1) ?? 0) + 1;
  const choices = cuts.slice(1).map((cut, n) => pattern.slice((cuts[n] ?? 0) + 1, cut));
  const optional = pattern[end] === "?";
  const rest = pattern.slice(optional ? end + 1 : end);
  return [...choices, ...(optional ? [""] : [])].flatMap((choice) =>
    alternativesOf(`${pattern.slice(0, open.index)}${choice}${rest}`),
  );
}

const Paths = z.union([z.string().transform((one) => [one]), z.array(z.string())]).default([]);
const Side = z.object({ path: Paths, pathNot: Paths });
const Rules = z.array(z.object({ name: z.string(), from: Side, to: Side }));

describe("the import rules", async () => {
  const rules = Rules.parse(
    (await import(new URL("./config/dependency-cruiser.mjs", import.meta.url).href)).default.forbidden,
  );

  it("each have a planted offence", () => {
    expect(rules.map(({ name }) => name).sort()).toEqual([...new Set(PLANTED.map(([, , rule]) => rule))].sort());
  });

  it("name only files, folders and packages that exist", async () => {
    const manifest = z
      .object({ dependencies: z.record(z.string(), z.string()), devDependencies: z.record(z.string(), z.string()) })
      .parse(JSON.parse(await readFile(join(ROOT, "package.json"), "utf8")));
    const packages = Object.keys({ ...manifest.dependencies, ...manifest.devDependencies });
    const pages = (await readdir(join(ROOT, "hub/ui"))).map((file) => `hub/ui/${file}`);
    const there = [
      ...(await sourceFiles()),
      ...pages,
      ...packages.map((name) => `node_modules/${name}/`),
      ...builtinModules,
    ];
    const dead = rules.flatMap(({ name, from, to }) =>
      [from.path, from.pathNot, to.path, to.pathNot]
        .flat()
        .flatMap(alternativesOf)
        // In an import rule's `to` pattern, `$1` stands for what the first group of the `from` pattern matched.
        .map((pattern) => pattern.replace("$1", "[^/]+"))
        .filter((pattern) => !there.some((path) => new RegExp(pattern).test(path)))
        .map((pattern) => `${name}: ${pattern}`),
    );
    expect(dead).toEqual([]);
  });

  it("are read one alternative at a time", () => {
    expect(alternativesOf("^hub/(a|b(c|d)?)[.]ts$")).toEqual([
      "^hub/a[.]ts$",
      "^hub/bc[.]ts$",
      "^hub/bd[.]ts$",
      "^hub/b[.]ts$",
    ]);
    expect(alternativesOf("^hub/(?!a)[^/]+$")).toEqual(["^hub/(?!a)[^/]+$"]);
  });

  it("report every planted offence", async () => {
    const root = await plant();
    const args = [
      "--config",
      "test/config/dependency-cruiser.mjs",
      "--output-type",
      "json",
      "agent",
      "hub",
      "shared",
      "cloud-init",
    ];
    const { stdout } = await run(join(ROOT, "node_modules/.bin/depcruise"), args, {
      cwd: root,
      maxBuffer: 50_000_000,
    }).catch((error: { stdout: string }) => error);
    const { violations } = CruiseResult.parse(JSON.parse(stdout)).summary;
    const reported = new Set(violations.map(({ from, rule }) => `${from}: ${rule.name}`));
    expect(PLANTED.map(([file, , rule]) => `${file}: ${rule}`).filter((expected) => !reported.has(expected))).toEqual(
      [],
    );
  });
});
