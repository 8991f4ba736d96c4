import { createHash } from "node:crypto";
import { chmod, copyFile, lstat, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { execa } from "execa";
import type { Architecture, PackageSpec } from "./package-spec.ts";

/**
 * The agent's and hub's Debian packages can be compressed in two ways: `xz` is for releases, and the fast `zstd` is for tests. Debian 12 and Ubuntu
 * 22.04 unpack both `xz` and `zstd`.
 */
export const COMPRESSIONS = { xz: ["-Zxz", "-z6"], zstd: ["-Zzstd", "-z3"] } as const;
export type Compression = keyof typeof COMPRESSIONS;

interface Deb {
  readonly repository: string;
  /** `packDeb` adds the folder `DEBIAN/` to the package's files. */
  readonly root: string;
  readonly spec: PackageSpec;
  readonly architecture: Architecture;
  readonly version: string;
  /** The latest modification time that a file in the package may have, in seconds since 1970. */
  readonly sourceDateEpoch: number;
  readonly compression: Compression;
}

const SCRIPTS = ["postinst", "prerm", "postrm"] as const;

/**
 * Packs the staged files into a Debian package. The same files always give the same package, because `packDeb` uses fixed owners, times, order and
 * compression.
 */
export async function packDeb(deb: Deb, out: string): Promise<string> {
  const { repository, root, spec, architecture, version } = deb;
  const control = join(root, "DEBIAN");
  await mkdir(control, { mode: 0o755 });
  const files = await listFiles(root);
  await writeFile(join(control, "control"), await controlText(deb, files));
  await writeFile(join(control, "md5sums"), await md5sums(root, files));
  if (spec.conffiles.length > 0) await writeFile(join(control, "conffiles"), `${spec.conffiles.join("\n")}\n`);
  for (const script of SCRIPTS) {
    await copyFile(join(repository, "packaging", spec.home, script), join(control, script));
    await chmod(join(control, script), 0o755);
  }
  for (const file of ["control", "md5sums", "conffiles"]) {
    await chmod(join(control, file), 0o644).catch(() => undefined);
  }
  const target = join(out, `${spec.name}_${version}_${architecture}.deb`);
  await execa("dpkg-deb", ["--root-owner-group", ...COMPRESSIONS[deb.compression], "--build", root, target], {
    env: { SOURCE_DATE_EPOCH: String(deb.sourceDateEpoch), DPKG_DEB_THREADS_MAX: "1" },
  });
  return target;
}

async function listFiles(root: string, folder = root): Promise<string[]> {
  const found: string[] = [];
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (relative(root, path) === "DEBIAN") continue;
    if (entry.isDirectory()) found.push(...(await listFiles(root, path)));
    else found.push(path);
  }
  return found.sort();
}

async function controlText({ spec, architecture, version }: Deb, files: readonly string[]): Promise<string> {
  let bytes = 0;
  for (const file of files) bytes += (await lstat(file)).size;
  const [synopsis, ...more] = spec.description;
  return [
    `Package: ${spec.name}`,
    `Version: ${version}`,
    `Architecture: ${architecture}`,
    "Maintainer: Muster maintainers <maintainers@muster.invalid>",
    `Installed-Size: ${Math.ceil(bytes / 1024)}`,
    `Depends: ${spec.depends.join(", ")}`,
    ...(spec.recommends.length === 0 ? [] : [`Recommends: ${spec.recommends.join(", ")}`]),
    "Section: admin",
    "Priority: optional",
    `Description: ${synopsis}`,
    ...more.map((line) => ` ${line}`),
    "",
  ].join("\n");
}

/** Makes the package's file `md5sums` for `dpkg --verify`, which supports no other hash. */
async function md5sums(root: string, files: readonly string[]): Promise<string> {
  const lines: string[] = [];
  for (const file of files) {
    if (!(await lstat(file)).isFile()) continue;
    const sum = createHash("md5")
      .update(await readFile(file))
      .digest("hex");
    lines.push(`${sum}  ${relative(root, file)}\n`);
  }
  return lines.join("");
}
