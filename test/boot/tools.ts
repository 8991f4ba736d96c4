import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";

/** The programs that the boot suite needs, each with its Debian package. */
export const TOOLS: Readonly<Record<string, string>> = {
  mmdebstrap: "mmdebstrap",
  zstd: "zstd",
  "mkfs.ext4": "e2fsprogs",
  lxd: "lxd",
  lxc: "lxd-client",
  ip: "iproute2",
  iptables: "iptables",
  dnsmasq: "dnsmasq-base",
};

/** Throws an error that names the missing packages, before the boot suite spends minutes on a boot that would fail. */
export function requireTools(path = process.env["PATH"] ?? ""): void {
  const folders = path.split(delimiter).filter((folder) => folder !== "");
  const missing = Object.keys(TOOLS).filter((tool) => !folders.some((folder) => existsSync(join(folder, tool))));
  if (missing.length === 0) return;
  const packages = [...new Set(missing.map((tool) => TOOLS[tool]))].join(" ");
  throw new Error(
    `A boot needs ${missing.join(", ")}, not found on the PATH (${path}). apt-get install --no-install-recommends ${packages}`,
  );
}
