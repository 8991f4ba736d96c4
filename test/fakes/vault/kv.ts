import { dataReply, invalid, noContent, notFound, unsupported, VaultFault, type VaultReply, warned } from "./answer.ts";
import type { VaultClock } from "./clock.ts";

interface Version {
  readonly data: Record<string, unknown>;
  readonly createdAt: number;
  deletedAt: number | null;
  destroyed: boolean;
}
interface Entry {
  current: number;
  readonly versions: Map<number, Version>;
}

export class KvMount {
  readonly #clock: VaultClock;
  readonly #entries = new Map<string, Entry>();
  /** Vault's setting `cas_required` of a mount: if true, each write must name the version that it replaces. */
  casRequired = false;
  maxVersions = 10;

  constructor(clock: VaultClock) {
    this.#clock = clock;
  }

  /**
   * In Vault, a write to an existing path needs the capability `update`, and a write to a new path `create`. A secret's path still exists after
   * somebody has deleted all versions of the secret.
   */
  has(below: string): boolean {
    return !below.startsWith("data/") || this.#entries.has(below.slice("data/".length));
  }
  paths(): string[] {
    return [...this.#entries.keys()].sort();
  }

  /** Returns the data in the newest version of a secret, or undefined if somebody has deleted the newest version. */
  newest(path: string): Record<string, unknown> | undefined {
    const entry = this.#entries.get(path);
    const version = entry?.versions.get(entry.current);
    return version === undefined || version.deletedAt !== null || version.destroyed ? undefined : version.data;
  }

  answer(method: string, below: string, query: URLSearchParams, body: unknown): VaultReply {
    const [kind = "", ...rest] = below.split("/");
    const path = rest.join("/");
    if (kind !== "data" && kind !== "metadata" && kind !== "destroy")
      throw warned(
        "Invalid path for a versioned K/V secrets engine. See the API docs for the appropriate API endpoints",
      );
    if (rest.length === 0) throw warned("Non-listing operations on the root of a K/V v2 mount are not supported.");
    if (path.endsWith("/") && method !== "GET") throw invalid("cannot write to a path ending in '/'");
    if (method === "PATCH") throw new VaultFault(405, []);
    const writes = method === "POST" || method === "PUT";
    if (kind === "data" && method === "GET") return this.read(path, query);
    if (kind === "data" && writes) return this.write(path, body);
    if (kind === "data" && method === "DELETE") return this.deleteNewest(path);
    if (kind === "metadata" && method === "GET") return this.readMetadata(path);
    if (kind === "metadata" && method === "DELETE") return this.deleteMetadata(path);
    if (kind === "destroy" && writes) return this.destroy(path, body);
    throw unsupported();
  }

  read(path: string, query: URLSearchParams): VaultReply {
    const entry = this.#entries.get(path);
    const number = Number(query.get("version") ?? 0) || (entry?.current ?? 0);
    const version = entry?.versions.get(number);
    if (version === undefined) throw notFound();
    const metadata = this.#metadata(number, version);
    if (version.deletedAt === null && !version.destroyed) return dataReply({ data: version.data, metadata });
    const gone = dataReply({ data: null, metadata });
    throw new VaultFault(404, [], gone.body as Record<string, unknown>);
  }

  write(path: string, body: unknown): VaultReply {
    const { data, options } = (body ?? {}) as { data?: unknown; options?: { cas?: unknown } };
    if (data === undefined) throw invalid("no data provided");
    if (typeof data !== "object" || Array.isArray(data))
      throw invalid(`error converting input ${JSON.stringify(data)} for field "data": expected a map`);
    const entry = this.#entries.get(path) ?? { current: 0, versions: new Map<number, Version>() };
    const cas = options?.cas;
    if (cas !== undefined && Number.isNaN(Number(cas))) throw invalid("error parsing check-and-set parameter");
    if (cas !== undefined && Number(cas) !== entry.current)
      throw invalid("check-and-set parameter did not match the current version");
    if (cas === undefined && this.casRequired) throw invalid("check-and-set parameter required for this call");
    entry.current += 1;
    const version = { data: structuredClone(data ?? {}) as Record<string, unknown>, createdAt: this.#clock.now() };
    entry.versions.set(entry.current, { ...version, deletedAt: null, destroyed: false });
    entry.versions.delete(entry.current - this.maxVersions);
    this.#entries.set(path, entry);
    const made = entry.versions.get(entry.current);
    return dataReply(made === undefined ? null : this.#metadata(entry.current, made));
  }

  /** Deletes the newest version of a secret. In Vault the operation `undelete` could restore the deleted version. */
  deleteNewest(path: string): VaultReply {
    const entry = this.#entries.get(path);
    const version = entry?.versions.get(entry.current);
    if (version !== undefined) version.deletedAt ??= this.#clock.now();
    return noContent;
  }

  /** Removes the data of the named versions of a secret for good, and keeps the metadata of these versions. */
  destroy(path: string, body: unknown): VaultReply {
    const { versions = [] } = (body ?? {}) as { versions?: readonly number[] };
    for (const number of versions) {
      const version = this.#entries.get(path)?.versions.get(number);
      if (version !== undefined) version.destroyed = true;
    }
    return noContent;
  }

  readMetadata(path: string): VaultReply {
    const entry = this.#entries.get(path);
    if (entry === undefined) throw notFound();
    const versions = [...entry.versions].map(([number, one]) => {
      const { version: _number, ...metadata } = this.#metadata(number, one);
      return [number, metadata] as const;
    });
    return dataReply({
      cas_required: false,
      current_version: entry.current,
      max_versions: 0,
      // Vault reports 0 as the oldest version of a secret until it has removed a version.
      oldest_version: entry.current > this.maxVersions ? Math.min(...entry.versions.keys()) : 0,
      versions: Object.fromEntries(versions),
    });
  }

  deleteMetadata(path: string): VaultReply {
    this.#entries.delete(path);
    return noContent;
  }

  #metadata(number: number, version: Version): Record<string, unknown> {
    return {
      version: number,
      created_time: new Date(version.createdAt).toISOString(),
      deletion_time: version.deletedAt === null ? "" : new Date(version.deletedAt).toISOString(),
      destroyed: version.destroyed,
    };
  }
}
