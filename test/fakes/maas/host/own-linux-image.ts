import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { HostFile } from "./vendor-data.ts";

export const OWN_LINUX = new URL("own-linux.ts", import.meta.url).pathname;

const DPKG = "var/lib/dpkg";
/** The packages in the package list of a simulated host, because the agent uses their programs for accounts. */
const PACKAGES = ["passwd", "login"];

const ACCOUNTS: Readonly<Record<string, readonly string[]>> = {
  passwd: ["root:x:0:0:root:/root:/bin/bash", "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin"],
  group: ["root:x:0:", "tty:x:5:", "shadow:x:42:", "nogroup:x:65534:"],
  shadow: ["root:*:20000:0:99999:7:::", "nobody:*:20000:0:99999:7:::"],
  gshadow: ["root:*::", "tty:*::", "shadow:*::", "nogroup:*::"],
};

/** The files that only a host with a Linux of its own has: accounts, and entries of some packages from this computer's dpkg. */
export function ownLinuxFiles(): HostFile[] {
  const accounts = Object.entries(ACCOUNTS).map(([name, lines]) => ({
    path: `etc/${name}`,
    mode: name.endsWith("shadow") ? 0o640 : 0o644,
    content: `${lines.join("\n")}\n`,
  }));
  return [...accounts, ...packageFiles()];
}

function packageFiles(): HostFile[] {
  const status = join("/", DPKG, "status");
  const paragraphs = existsSync(status) ? readFileSync(status, "utf8").split("\n\n") : [];
  const chosen = paragraphs.filter((text) => PACKAGES.some((name) => text.startsWith(`Package: ${name}\n`)));
  const info = PACKAGES.flatMap((name) => [`${DPKG}/info/${name}.list`, `${DPKG}/info/${name}.md5sums`]);
  const copied = info
    .filter((path) => existsSync(join("/", path)))
    .map((path) => ({ path, mode: 0o644, content: readFileSync(join("/", path), "utf8") }));
  return [{ path: `${DPKG}/status`, mode: 0o644, content: `${chosen.join("\n\n")}\n` }, ...copied];
}
