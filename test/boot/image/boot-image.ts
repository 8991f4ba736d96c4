import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import { requireTools } from "../tools.ts";

const BUILD = new URL("build.sh", import.meta.url).pathname;

/** The cache lies outside the repository, so that all clones share it. `MUSTER_BOOT_CACHE` sets another folder for the cache. */
export const bootCache = (): string =>
  process.env["MUSTER_BOOT_CACHE"] ?? join(process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"), "muster-boot");

/** The image built from Debian's packages. Each version of the build script has its own image in the cache. */
export interface BootImage {
  readonly folder: string;
  readonly rootfs: string;
  readonly metadata: string;
  readonly disk: string;
  readonly kernel: string;
}

/** Builds the image when the cache has none. The build takes some minutes and happens once on a machine. */
export async function bootImage(): Promise<BootImage> {
  requireTools();
  const key = createHash("sha256").update(readFileSync(BUILD)).digest("hex").slice(0, 16);
  const folder = join(bootCache(), `debian-${key}`);
  if (!existsSync(folder)) {
    mkdirSync(bootCache(), { recursive: true });
    await execa(BUILD, [folder], { all: true });
  }
  return {
    folder,
    rootfs: join(folder, "rootfs.tar.zst"),
    metadata: join(folder, "metadata.tar"),
    disk: join(folder, "disk.raw"),
    kernel: join(folder, "vmlinuz"),
  };
}
