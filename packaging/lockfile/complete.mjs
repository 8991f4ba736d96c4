/**
 * Adds the optional packages of other platforms to package-lock.json. `npm install` leaves out packages for other platforms, and then `npm ci` on a
 * machine of another platform refuses the lock file. Run `npm run lockfile:complete` after each `npm install`. `lockfile:complete` changes nothing if
 * no package is missing in package-lock.json.
 */
import { readFileSync, writeFileSync } from "node:fs";

const FILE = new URL("../../package-lock.json", import.meta.url);
const OS = /^(android|darwin|linux|win32|freebsd|openharmony|sunos|netbsd|openbsd|aix)$/;

/**
 * For example, `@scope/cli-linux-x64-musl` is for the system linux, the processor x64 and the C library musl. Returns null for a name without a
 * platform.
 */
function platformOf(name) {
  const [os = "", cpu = "", abi = ""] = (name.split("/").pop() ?? "").replace(/^(cli|binding|node)-/, "").split("-");
  if (!OS.test(os)) return null;
  return {
    os: [os],
    cpu: [cpu],
    ...(os === "linux" && abi !== "" ? { libc: [abi.startsWith("musl") ? "musl" : "glibc"] } : {}),
  };
}

function missingEntries(packages) {
  const missing = {};
  for (const [path, entry] of Object.entries(packages)) {
    for (const [name, range] of Object.entries(entry.optionalDependencies ?? {})) {
      const place = `node_modules/${name}`;
      if (packages[place] !== undefined || packages[`${path}/${place}`] !== undefined) continue;
      const platform = platformOf(name);
      if (platform === null) continue;
      missing[place] = {
        version: range.replace(/^[\^~]/, ""),
        optional: true,
        ...(entry.dev ? { dev: true } : {}),
        ...platform,
      };
    }
  }
  return missing;
}

const lock = JSON.parse(readFileSync(FILE, "utf8"));
const missing = missingEntries(lock.packages);
const byName = ([a], [b]) => (a < b ? -1 : a > b ? 1 : 0);
lock.packages = Object.fromEntries(Object.entries({ ...lock.packages, ...missing }).sort(byName));
writeFileSync(FILE, `${JSON.stringify(lock, null, 2)}\n`);
process.stdout.write(`${Object.keys(missing).length} packages of other platforms added\n`);
