import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { open, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import type { Log } from "../../shared/log.ts";

export interface AgentPackage {
  readonly file: string;
  readonly version: string;
  /** The architecture of the agent package in Debian's notation, for example `amd64`. */
  readonly architecture: string;
  readonly sha256: string;
  readonly bytes: number;
}

const NAME = /^muster-agent_([0-9][A-Za-z0-9.+~-]*)_([a-z0-9]+)[.]deb$/;

/**
 * The agent packages that hosts download at their first boot. The path of a package's download contains the package's checksum. The user-data of a
 * new host names the newest agent package of the host's architecture. After an upgrade of the hub, a host with older user-data still finds the agent
 * package that its user-data names. The hub reads the folder of agent packages at each use, so a new package needs no restart of the hub. The hub
 * hashes a package file only if the file's size or modification time changed. The hub does not serve a package file that is still being copied,
 * because the file's checksum would change.
 */
export class AgentPackages {
  readonly #folder: string;
  readonly #log: Log;
  readonly #hashed = new Map<string, { readonly stamp: string; readonly sha256: Promise<string | null> }>();

  constructor(folder: string, log: Log) {
    this.#folder = folder;
    this.#log = log;
  }

  /**
   * The newest agent package of an architecture, by version; null if the folder has no package for the architecture. If the hub has no package for a
   * host's architecture, the host's image must contain the agent.
   */
  async newest(architecture: string): Promise<AgentPackage | null> {
    const fitting = (await this.#list()).filter((one) => one.architecture === architecture);
    fitting.sort((a, b) => compareVersions(b.version, a.version));
    return fitting[0] ?? null;
  }

  async newestOfEach(): Promise<AgentPackage[]> {
    const all = await this.#list();
    const newest = await Promise.all([...new Set(all.map((one) => one.architecture))].map((one) => this.newest(one)));
    return newest.filter((one) => one !== null);
  }

  async withSum(sha256: string): Promise<AgentPackage | null> {
    return (await this.#list()).find((one) => one.sha256 === sha256) ?? null;
  }

  async #list(): Promise<AgentPackage[]> {
    const names = await readdir(this.#folder).catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return [];
      throw error;
    });
    const found = await Promise.all(names.map((name) => this.#read(name)));
    return found.filter((one) => one !== null);
  }

  async #read(name: string): Promise<AgentPackage | null> {
    const [, version, architecture] = NAME.exec(name) ?? [];
    if (version === undefined || architecture === undefined) return null;
    const file = join(this.#folder, name);
    try {
      const { size, mtimeMs, ino } = await stat(file);
      const sha256 = await this.#sum(file, `${ino} ${size} ${mtimeMs}`);
      return sha256 === null ? null : { file, version, architecture, bytes: size, sha256 };
    } catch (error) {
      // If one package file was removed or cannot be read, the hub still serves the other agent packages.
      this.#log.warn("an agent package cannot be read", { file, error });
      return null;
    }
  }

  /** The SHA-256 of a package file; null for a file that is not a complete package. */
  #sum(file: string, stamp: string): Promise<string | null> {
    const known = this.#hashed.get(file);
    if (known?.stamp === stamp) return known.sha256;
    const sha256 = isWholePackage(file).then((whole) => {
      if (whole) return sumOf(file);
      this.#log.info("a file is not a complete Debian package (it may still be copied), so hosts do not get it", {
        file,
      });
      return null;
    });
    this.#hashed.set(file, { stamp, sha256 });
    sha256.catch(() => this.#hashed.delete(file));
    return sha256;
  }
}

const AR_MAGIC = "!<arch>\n";
const AR_HEADER_BYTES = 60;
/**
 * The largest number of archive members that the hub accepts in a Debian package. A Debian package has the members debian-binary, control.tar and
 * data.tar, and sometimes a signature.
 */
const MOST_MEMBERS = 16;

/**
 * A Debian package is an ar archive that ends where its last member, `data.tar`, ends (deb(5)). A Debian package that is still being copied is
 * shorter than the headers of its members say.
 */
async function isWholePackage(path: string): Promise<boolean> {
  const file = await open(path);
  try {
    const { size } = await file.stat();
    const read = async (at: number, bytes: number): Promise<string> =>
      (await file.read(Buffer.alloc(bytes), 0, bytes, at)).buffer.toString("latin1");
    if ((await read(0, AR_MAGIC.length)) !== AR_MAGIC) return false;
    for (let at = AR_MAGIC.length, members = 0; members < MOST_MEMBERS; members++) {
      const header = /^(.{16}).{32}([0-9]+) *`\n$/.exec(await read(at, AR_HEADER_BYTES));
      const [, name = "", bytes = ""] = header ?? [];
      if (header === null) return false;
      const end = at + AR_HEADER_BYTES + Number(bytes);
      // The members of an ar archive begin at even offsets.
      const next = end + (end % 2);
      if (name.startsWith("data.tar")) return size === end || size === next;
      at = next;
    }
    return false;
  } finally {
    await file.close();
  }
}

async function sumOf(file: string): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(file), hash);
  return hash.digest("hex");
}

/**
 * Compares two versions of a Debian package; the result is negative if `a` is older. Numbers within a version compare as numbers, and a version with
 * the suffix `~...` is older than the version without the suffix (Debian policy 5.6.12).
 */
export function compareVersions(a: string, b: string): number {
  const parts = (version: string): string[] => version.match(/[0-9]+|~|[^0-9~]+/g) ?? [];
  const [left, right] = [parts(a), parts(b)];
  for (let at = 0; at < Math.max(left.length, right.length); at++) {
    const [one, other] = [left[at] ?? "", right[at] ?? ""];
    if (one === other) continue;
    if (one === "~" || other === "~") return one === "~" ? -1 : 1;
    const byNumber = Number(one) - Number(other);
    return Number.isNaN(byNumber) ? (one < other ? -1 : 1) : byNumber;
  }
  return 0;
}
