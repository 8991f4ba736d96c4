import { dataReply, invalid, noContent, notFound, VaultFault, type VaultReply } from "./answer.ts";
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

/** One mount of KV version 2 in one namespace. */
export class KvMount {
  readonly #clock: VaultClock;
  readonly #entries = new Map<string, Entry>();
  /** The mount's `cas_required`. */
  casRequired = false;
  maxVersions = 10;

  constructor(clock: VaultClock) {
    this.#clock = clock;
  }

  has(path: string): boolean {
    return this.#entries.has(path);
  }
  paths(): string[] {
    return [...this.#entries.keys()].sort();
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
    if (typeof data !== "object" || data === null || Array.isArray(data)) throw invalid("no data provided");
    const entry = this.#entries.get(path) ?? { current: 0, versions: new Map<number, Version>() };
    const cas = options?.cas;
    if (cas !== undefined && Number.isNaN(Number(cas))) throw invalid("error parsing check-and-set parameter");
    if (cas !== undefined && Number(cas) !== entry.current)
      throw invalid("check-and-set parameter did not match the current version");
    if (cas === undefined && this.casRequired) throw invalid("check-and-set parameter required for this call");
    entry.current += 1;
    const version = { data: structuredClone(data) as Record<string, unknown>, createdAt: this.#clock.now() };
    entry.versions.set(entry.current, { ...version, deletedAt: null, destroyed: false });
    entry.versions.delete(entry.current - this.maxVersions);
    this.#entries.set(path, entry);
    const made = entry.versions.get(entry.current);
    return dataReply(made === undefined ? null : this.#metadata(entry.current, made));
  }

  /** The newest version alone, which can be undeleted. */
  deleteNewest(path: string): VaultReply {
    const entry = this.#entries.get(path);
    const version = entry?.versions.get(entry.current);
    if (version !== undefined) version.deletedAt ??= this.#clock.now();
    return noContent;
  }

  readMetadata(path: string): VaultReply {
    const entry = this.#entries.get(path);
    if (entry === undefined) throw notFound();
    const versions = [...entry.versions].map(([number, version]) => [number, this.#metadata(number, version)] as const);
    return dataReply({
      cas_required: false,
      current_version: entry.current,
      max_versions: 0,
      oldest_version: Math.min(...entry.versions.keys()),
      versions: Object.fromEntries(versions),
    });
  }

  /** Every version and what was known of them. */
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
      custom_metadata: null,
    };
  }
}
