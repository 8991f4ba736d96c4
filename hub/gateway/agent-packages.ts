import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import type { Log } from "../log.ts";

/** One agent package that lies in the hub's folder. */
export interface AgentPackage {
  readonly file: string;
  readonly version: string;
  /** Debian's name, e.g. `amd64`. */
  readonly architecture: string;
  readonly sha256: string;
  readonly bytes: number;
}

const NAME = /^muster-agent_([0-9][A-Za-z0-9.+~-]*)_([a-z0-9]+)[.]deb$/;

/**
 * The agent packages that hosts fetch at first boot. Each is served by its checksum, and a new host is told the newest one of its architecture: a host whose
 * user-data was rendered before an upgrade still finds the package that it was told. The folder is looked at each time, so that a package that is put there
 * needs no restart; a file is hashed only when its size or time changed.
 */
export class AgentPackages {
  readonly #folder: string;
  readonly #log: Log;
  readonly #hashed = new Map<string, { readonly stamp: string; readonly sha256: Promise<string> }>();

  constructor(folder: string, log: Log) {
    this.#folder = folder;
    this.#log = log;
  }

  /** The newest by version; null where the folder has none for the architecture, so that the host's image must bring the agent. */
  async newest(architecture: string): Promise<AgentPackage | null> {
    const fitting = (await this.#list()).filter((one) => one.architecture === architecture);
    fitting.sort((a, b) => compareVersions(b.version, a.version));
    return fitting[0] ?? null;
  }

  /** One for each architecture that there is any for. */
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
      return { file, version, architecture, bytes: size, sha256: await this.#sum(file, `${ino} ${size} ${mtimeMs}`) };
    } catch (error) {
      // Removed or unreadable: the others are served all the same.
      this.#log.warn("an agent package cannot be read", { file, error });
      return null;
    }
  }

  #sum(file: string, stamp: string): Promise<string> {
    const known = this.#hashed.get(file);
    if (known?.stamp === stamp) return known.sha256;
    const sha256 = sumOf(file);
    this.#hashed.set(file, { stamp, sha256 });
    sha256.catch(() => this.#hashed.delete(file));
    return sha256;
  }
}

async function sumOf(file: string): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(file), hash);
  return hash.digest("hex");
}

/** Negative when `a` is older. Numbers within a version count as numbers; a part with `~` is older than the same without (Debian policy 5.6.12). */
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
