import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readlinkSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execa } from "execa";

/**
 * The folders in which the Debian root shows this computer's own files and stores changes in an overlay. All other folders of the Debian root than
 * those in `COVERED` begin empty.
 */
const COVERED = ["usr", "etc", "var/lib/dpkg"];
const EMPTY = ["var/log", "tmp", "run", "dev", "proc", "root"];
const TOOLS = ["/usr/bin/dpkg", "/usr/bin/deb-systemd-helper", "/usr/sbin/adduser", "/usr/bin/unshare"];

/**
 * The Debian root is a folder with a Debian system in which tests really install packages. The Debian root is an overlay on this computer's programs
 * and dpkg database, so installations need no download and leave the computer unchanged. No systemd runs in the Debian root, so services do not
 * start.
 */
export class DebianRoot {
  readonly #folder = mkdtempSync(join(tmpdir(), "muster-root-"));

  constructor() {
    for (const path of COVERED) mkdirSync(this.path(path), { recursive: true });
    for (const path of EMPTY) mkdirSync(this.path(path), { recursive: true });
    for (const path of COVERED) {
      mkdirSync(join(this.#folder, "changed", path), { recursive: true });
      mkdirSync(join(this.#folder, "work", path), { recursive: true });
    }
    for (const name of ["bin", "sbin", "lib", "lib64"].filter((one) => existsSync(`/${one}`)))
      symlinkSync(readlinkSync(`/${name}`), this.path(name));
    // Muster's services run as their own users, which must be able to enter the Debian root.
    chmodSync(this.path(""), 0o755);
  }

  /** Returns the path on this computer of a file in the Debian root. Changes to the overlaid folders of the Debian root are below `changed`. */
  path(name: string): string {
    return join(this.#folder, "root", name);
  }

  changed(name: string): string {
    return join(this.#folder, "changed", name);
  }

  /**
   * Runs a script as the user root in the Debian root. The overlays of the Debian root are mounted only while `run` runs its script, but the files
   * that the script wrote remain.
   */
  run(script: string) {
    const mounts = COVERED.map(
      (path) =>
        `mount -t overlay muster -o lowerdir=/${path},upperdir=changed/${path},workdir=work/${path} root/${path}`,
    );
    const binds = ["dev", "proc"].map((path) => `mount --rbind /${path} root/${path}`);
    const enter = 'exec chroot root env -i PATH="$PATH" LC_ALL=C DEBIAN_FRONTEND=noninteractive sh -euc "$0"';
    return execa("unshare", ["--mount", "sh", "-euc", [...mounts, ...binds, enter].join("\n"), script], {
      cwd: this.#folder,
      reject: false,
      env: { PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" },
    });
  }

  /** Returns the files that the installed packages have added to the Debian root file system, without dpkg's own files and logs. */
  added(): string[] {
    const below = (folder: string, name: string) =>
      readdirSync(folder, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile() || entry.isSymbolicLink())
        .map((entry) => join(entry.parentPath, entry.name).replace(folder, name));
    return [
      ...below(this.changed("usr"), "/usr"),
      ...below(this.changed("etc"), "/etc"),
      ...below(this.path("var"), "/var"),
    ].filter((path) => !path.startsWith("/var/log/") && !path.startsWith("/var/lib/dpkg/"));
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** Returns the reason why this computer cannot have a Debian root, or null. */
  static lacks(): string | null {
    if (process.getuid?.() !== 0) return "it needs root";
    const missing = TOOLS.filter((tool) => !existsSync(tool));
    if (missing.length > 0) return `there is no ${missing.join(", ")}`;
    const root = new DebianRoot();
    try {
      const script =
        "mount -t overlay muster -o lowerdir=/usr,upperdir=changed/usr,workdir=work/usr root/usr && chroot root true";
      const tried = spawnSync("unshare", ["--mount", "sh", "-c", script], { cwd: root.#folder, encoding: "utf8" });
      return tried.status === 0 ? null : `no overlay can be mounted: ${tried.stderr}`;
    } finally {
      root.remove();
    }
  }
}
