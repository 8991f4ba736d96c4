import { spawn } from "node:child_process";
import { join } from "node:path";
import type { ResidueEntry } from "../../../shared/residue/snapshot.ts";
import { isPresent } from "../files.ts";
import { type DiskWalk, type Found, walkDisks } from "./disk-walk.ts";
import { type FoundFiles, textOfPath } from "./found-files.ts";
import { presence, type Reading, Unreadable, valued } from "./reading.ts";
import { describeFile } from "./trees.ts";

const GETCAP_TIMEOUT_MS = 60_000;
/** How many files one run of the program `getcap` reads. */
const AT_ONCE = 400;

/**
 * The readers of those items of the residue snapshot that need the owner or the mode of every file. All readers from one call of `diskReaders` share
 * one walk over the disks.
 */
export function diskReaders() {
  let walking: Promise<DiskWalk> | null = null;
  const walk = (reading: Reading): Promise<DiskWalk> => {
    walking ??= walkDisks(reading);
    return walking;
  };
  return {
    ownerless_files: async (reading: Reading) => listed(reading, (await walk(reading)).ownerless),
    tenant_files: async (reading: Reading) => {
      if (reading.tenant === null) throw new Unreadable("The order names no tenant.");
      return listed(reading, (await walk(reading)).ofTenant);
    },
    setuid_files: async (reading: Reading) => describeAll(reading, (await walk(reading)).setuid.all()),
    file_capabilities: async (reading: Reading) => readCapabilities(reading, (await walk(reading)).executables.all()),
  };
}

const listed = (reading: Reading, files: FoundFiles<Found>): ResidueEntry[] =>
  files.all().map(({ path, uid, gid }) => presence(reading, `${textOfPath(path)} of user ${uid}, group ${gid}`));

async function describeAll(reading: Reading, files: readonly Found[]): Promise<ResidueEntry[]> {
  const entries: ResidueEntry[] = [];
  for (const { path, mode } of files) {
    reading.signal.throwIfAborted();
    const value = await describeFile(join(reading.root, textOfPath(path)));
    entries.push(valued(reading, textOfPath(path), value ?? `a name that is not UTF-8, ${mode.toString(8)}`));
  }
  return entries;
}

/** For each file with capabilities, `getcap` prints a line such as `path cap_net_raw=ep`, and it prints nothing for other files. */
async function readCapabilities(
  reading: Reading,
  files: readonly { readonly path: string }[],
): Promise<ResidueEntry[]> {
  const tool = await toolPath(reading);
  const entries: ResidueEntry[] = [];
  for (let start = 0; start < files.length; start += AT_ONCE) {
    reading.signal.throwIfAborted();
    const paths = files.slice(start, start + AT_ONCE).map(({ path }) => join(reading.root, textOfPath(path)));
    for (const line of (await runGetcap(tool, paths, reading.signal)).split("\n")) {
      const [, path, capabilities] = /^(.*?) (?:= )?(\S*cap_\S+)$/.exec(line) ?? [];
      if (path === undefined || capabilities === undefined) continue;
      entries.push(valued(reading, path.slice(reading.root === "/" ? 0 : reading.root.length), capabilities));
    }
  }
  return entries;
}

/** The path of the machine's own program `getcap`, even if in a test a folder stands for the host, because `getcap` only reads. */
async function toolPath(reading: Reading): Promise<string> {
  for (const path of ["/usr/sbin/getcap", "/sbin/getcap", "/usr/bin/getcap"]) if (await isPresent(path)) return path;
  throw new Unreadable(
    `${reading.root === "/" ? "The host" : "This machine"} has no getcap. Install the package libcap2-bin.`,
  );
}

function runGetcap(tool: string, paths: readonly string[], signal: AbortSignal): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(tool, [...paths], {
      stdio: ["ignore", "pipe", "ignore"],
      timeout: GETCAP_TIMEOUT_MS,
      signal,
      env: { LC_ALL: "C", PATH: "/usr/sbin:/usr/bin" },
    });
    let text = "";
    child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
    });
    child.once("error", reject);
    // `getcap` ends with a status other than 0 if a file disappeared during the run. A killed `getcap` has no exit status, and its output is not
    // complete.
    child.once("close", (status) =>
      status === null ? reject(new Unreadable("getcap did not end in time.")) : resolve(text),
    );
  });
}
