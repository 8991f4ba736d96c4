/** The hub takes PostgreSQL's programs from the operator's folder, else from an installed PostgreSQL, else from the npm package (decision P7). */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Log } from "../../../shared/log.ts";
import { EmbeddedPostgresError } from "./error.ts";
import { copyOf, copyOut, findPackage } from "./npm-binaries.ts";
import { run, type ServerUser } from "./run.ts";

const OLDEST_MAJOR = 15;

export type Binaries = { binDir: string; version: string; major: number; source: "chosen" | "system" | "npm" };

export type BinariesOptions = {
  home: string;
  dataDir: string;
  user: ServerUser;
  log: Log;
  /** If the operator names a folder, the hub searches no other folder for PostgreSQL's programs. */
  binDir?: string | undefined;
  /** If `source` is set, the hub searches only the installed PostgreSQL or only the npm package for PostgreSQL's programs. */
  source?: "system" | "npm" | undefined;
  packageDir?: string | undefined;
};

/**
 * Only the major version of PostgreSQL that created a data folder can open the folder. For a new data folder, the hub takes the first usable version
 * of PostgreSQL.
 */
export async function findBinaries(options: BinariesOptions): Promise<Binaries> {
  const wanted = await majorOf(options.dataDir);
  const seen: Binaries[] = [];
  for await (const found of candidates(options)) {
    if (wanted === undefined ? found.major >= OLDEST_MAJOR : found.major === wanted) return found;
    seen.push(found);
  }
  const had = seen.map(({ version, binDir }) => `${version} in ${binDir}`).join(", ") || "none";
  if (wanted !== undefined) {
    throw new EmbeddedPostgresError(
      "data_version_mismatch",
      `The data in ${options.dataDir} was made by PostgreSQL ${wanted}; found: ${had}. Install PostgreSQL ${wanted} or set MUSTER_POSTGRES_BIN to its programs; to move to another major version, dump and restore`,
    );
  }
  throw new EmbeddedPostgresError(
    "binaries_missing",
    `No usable PostgreSQL >= ${OLDEST_MAJOR} found (looked at: ${had}). Run npm ci without --omit=optional, install PostgreSQL, set MUSTER_POSTGRES_BIN to the folder of its programs, or set DATABASE_URL`,
  );
}

async function* candidates(options: BinariesOptions): AsyncGenerator<Binaries> {
  if (options.binDir !== undefined) {
    const chosen = await probe(options.binDir, "chosen", options.user);
    if (chosen !== undefined) yield chosen;
    return;
  }
  if (options.source !== "npm") {
    const system = await Promise.all(
      (await systemFolders(options.user)).map((dir) => probe(dir, "system", options.user)),
    );
    yield* system.filter((found) => found !== undefined).sort((a, b) => b.major - a.major);
  }
  if (options.source !== "system") {
    const npm = await fromNpm(options);
    if (npm !== undefined) yield npm;
  }
}

async function systemFolders(user: ServerUser): Promise<string[]> {
  const versioned = [
    ...(await below("/usr/lib/postgresql", /^\d+$/)), // PostgreSQL's folder on Debian and Ubuntu
    ...(await below("/usr", /^pgsql-\d+$/)), // the PostgreSQL project's RPMs
    ...(await below("/opt/homebrew/opt", /^postgresql(@\d+)?$/)),
    ...(await below("/usr/local/opt", /^postgresql(@\d+)?$/)),
  ].map((folder) => join(folder, "bin"));
  const asked = await run("pg_config", ["--bindir"], user);
  return [
    ...versioned,
    ...(asked.status === 0 ? [asked.output] : []),
    "/usr/bin",
    "/usr/local/bin",
    "/usr/local/pgsql/bin",
  ];
}

async function below(folder: string, name: RegExp): Promise<string[]> {
  try {
    return (await readdir(folder)).filter((entry) => name.test(entry)).map((entry) => join(folder, entry));
  } catch {
    return [];
  }
}

async function fromNpm({
  packageDir = findPackage(),
  home,
  user,
  log,
}: BinariesOptions): Promise<Binaries | undefined> {
  if (packageDir === undefined) return undefined;
  const inPlace = await probe(join(packageDir, "native", "bin"), "npm", user);
  if (inPlace !== undefined) return inPlace;
  const copy = await copyOf(packageDir, home);
  const copied = await probe(join(copy, "bin"), "npm", user);
  if (copied !== undefined) return copied;
  log.info("copying PostgreSQL's programs to where its user can run them", { from: packageDir, to: copy });
  await copyOut(packageDir, copy);
  return await probe(join(copy, "bin"), "npm", user);
}

/** By running `postgres` and `initdb` with `--version`, `probe` shows that both programs can be executed and have their libraries. */
async function probe(binDir: string, source: Binaries["source"], user: ServerUser): Promise<Binaries | undefined> {
  const [server, init] = await Promise.all(
    ["postgres", "initdb"].map((program) => run(join(binDir, program), ["--version"], user)),
  );
  const version = /^postgres \(PostgreSQL\) ((\d+)\S*)/.exec(server?.output ?? "");
  if (server?.status !== 0 || init?.status !== 0 || version === null) return undefined;
  return { binDir, source, version: version[1] ?? "", major: Number(version[2]) };
}

/** The major version of PostgreSQL that created the data folder; undefined if the folder does not exist yet. */
async function majorOf(dataDir: string): Promise<number | undefined> {
  try {
    return Number.parseInt(await readFile(join(dataDir, "PG_VERSION"), "utf8"), 10);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}
