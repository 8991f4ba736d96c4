import { join } from "node:path";
import type { ResidueEntry } from "../../../shared/residue/snapshot.ts";
import { linesOf, type Reading, readText, Unreadable, valued } from "./reading.ts";

const VERIFY_TIMEOUT_MS = 20 * 60_000;
const STATUS = "var/lib/dpkg/status";

export async function readPackages(reading: Reading): Promise<ResidueEntry[]> {
  const text = await readText(join(reading.root, STATUS));
  if (text === null)
    throw new Unreadable("The host has no dpkg, whose list of packages is the only one that Muster reads.");
  return text.split("\n\n").flatMap((paragraph) => {
    const field = (name: string): string => new RegExp(`^${name}: (.*)$`, "m").exec(paragraph)?.[1] ?? "";
    const name = field("Package");
    return name === ""
      ? []
      : [valued(reading, `${name}:${field("Architecture")}`, `${field("Status")} ${field("Version")}`)];
  });
}

/**
 * Reads which installed files differ from the packages that own them. The lines that `dpkg --verify` prints tell a difference, such as `??5?????? c
 * /etc/x` and `missing /usr/x`, but its exit status does not. The program dpkg compares only content, so the items `critical_files` and
 * `setuid_files` compare modes and owners.
 */
export async function readPackageFiles(reading: Reading): Promise<ResidueEntry[]> {
  const { stdout, exitCode, stderr } = await reading.run("dpkg", ["--verify"], VERIFY_TIMEOUT_MS);
  if (exitCode > 1) throw new Unreadable(`dpkg --verify ended with status ${exitCode}: ${stderr.slice(0, 200)}`);
  return linesOf(stdout).flatMap((line) => {
    const [, flags, path] = /^(\S+)\s+(?:[a-z]\s+)?(\/.*)$/.exec(line) ?? [];
    if (path === undefined || flags === undefined)
      throw new Unreadable(`dpkg --verify wrote an unknown line: ${line.slice(0, 200)}`);
    return isLeftOut(path) ? [] : [valued(reading, path, flags)];
  });
}

/** Whether a path belongs to documentation, which operating system images often leave out. */
const isLeftOut = (path: string): boolean => /^\/usr\/share\/(doc|man|locale|info|lintian|linda)\//.test(path);
