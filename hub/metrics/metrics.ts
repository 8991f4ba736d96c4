import { collectDefaultMetrics, Registry } from "prom-client";
import type { Log } from "../../shared/log.ts";
import { openDatabase } from "../db/client.ts";
import type { Db } from "../db/tx.ts";
import { collectErrors } from "./counted/collection.ts";
import { FAMILIES, GAUGE_GROUPS } from "./families.ts";
import type { GaugeGroup } from "./gauges/group.ts";
import { type ProcessFacts, showProcess } from "./gauges/process.ts";
import { readSiteNames } from "./gauges/site-names.ts";

export interface Scrape {
  readonly contentType: string;
  readonly text: string;
}
export interface Metrics {
  /** Writes all metrics in OpenMetrics if the header Accept asks for it, and else in Prometheus's text format. */
  scrape(accept: string | undefined): Promise<Scrape>;
  close(): Promise<void>;
}

export interface MetricsOptions {
  readonly databaseUrl: string;
  readonly facts: ProcessFacts;
  readonly log: Log;
  /** The groups of gauges that the hub reads: by default all groups, and in tests any list of groups. */
  readonly groups?: readonly GaugeGroup[];
  readonly freshMs?: number;
  readonly statementMs?: number;
}

/** Two scrapes within `FRESH_MS` share one read of the database. */
const FRESH_MS = 5_000;
const STATEMENT_MS = 2_000;
const CONNECT_MS = 3_000;
/** After `READ_WITHIN_MS`, the hub skips the groups of gauges that it has not read yet. A scraper waits ten seconds by default. */
const READ_WITHIN_MS = 6_000;

/**
 * The metrics have a database connection of their own, so that a scrape neither waits for the hub's pool nor takes a connection from the hub's work.
 * The statement time-out of the metrics' own database connection ends a slow SQL statement.
 */
export function openMetrics(options: MetricsOptions): Metrics {
  const { freshMs = FRESH_MS, statementMs = STATEMENT_MS, log } = options;
  const database = openDatabase({
    url: options.databaseUrl,
    poolSize: 1,
    applicationName: "muster-metrics",
    log,
    timeouts: { connectMs: CONNECT_MS, statementMs, lockMs: statementMs },
  });
  const registries = openRegistries();
  const reader = new GaugeReader({ db: database.db, groups: options.groups ?? GAUGE_GROUPS, freshMs, log });
  return {
    scrape: async (accept) => {
      showProcess(options.facts);
      await reader.read();
      return registries.write(asksOpenMetrics(accept) ? "open" : "plain");
    },
    close: () => database.close(),
  };
}

/** A Prometheus server names OpenMetrics and the older text format in its header Accept, OpenMetrics first. */
const asksOpenMetrics = (accept: string | undefined): boolean =>
  /\bapplication\/openmetrics-text\b/i.test(accept ?? "");

let opened: ReturnType<typeof makeRegistries> | null = null;
/** prom-client's metrics of the process may be started only once in a process. */
function openRegistries(): ReturnType<typeof makeRegistries> {
  opened ??= makeRegistries();
  return opened;
}

function makeRegistries() {
  const plain = new Registry<typeof Registry.PROMETHEUS_CONTENT_TYPE>();
  const open = new Registry<typeof Registry.OPENMETRICS_CONTENT_TYPE>();
  open.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
  collectDefaultMetrics({ register: plain });
  for (const { metric } of FAMILIES) plain.registerMetric(metric);
  const names = plain.getMetricsAsArray().map(({ name }) => name);
  const metrics = names.map((name) => plain.getSingleMetric(name)).filter((metric) => metric !== undefined);
  for (const metric of metrics) open.registerMetric(metric);
  // To write OpenMetrics, prom-client removes the end `_total` from the names of its counters, and leaves them so. Unless the hub restores the
  // counters' names, the next answer in Prometheus's text format lacks the ending `_total`. The hub writes the answers to two scrapes one after the
  // other, so that no answer uses the names that another answer has changed.
  const write = async (format: "plain" | "open"): Promise<Scrape> => {
    metrics.forEach((metric, index) => void Reflect.set(metric, "name", names[index]));
    const registry = format === "open" ? open : plain;
    return { contentType: registry.contentType, text: await registry.metrics() };
  };
  let last: Promise<unknown> = Promise.resolve();
  return {
    write: (format: "plain" | "open"): Promise<Scrape> => {
      const written = last.then(() => write(format));
      last = written.catch(() => undefined);
      return written;
    },
  };
}

interface Reading {
  readonly db: Db;
  readonly groups: readonly GaugeGroup[];
  readonly freshMs: number;
  readonly log: Log;
}

/** Reads the gauges from the database: never twice at the same time, and at most once in `freshMs` milliseconds. */
class GaugeReader {
  readonly #about: Reading;
  #running: Promise<void> | null = null;
  #readAt = Number.NEGATIVE_INFINITY;
  #failed = new Set<string>();

  constructor(about: Reading) {
    this.#about = about;
  }

  read(): Promise<void> {
    if (this.#running === null && performance.now() - this.#readAt < this.#about.freshMs) return Promise.resolve();
    this.#running ??= this.#readAll().finally(() => {
      this.#readAt = performance.now();
      this.#running = null;
    });
    return this.#running;
  }

  /**
   * If the hub cannot read one group of gauges, it still reads the other groups. If the read of the sites' names has failed, no group of gauges can
   * name its sites.
   */
  async #readAll(): Promise<void> {
    const { db, groups } = this.#about;
    const until = performance.now() + READ_WITHIN_MS;
    const names = await readSiteNames(db).catch((error: unknown) => this.#fail("site_names", error));
    for (const group of groups) {
      if (names === null || performance.now() > until) {
        this.#skip(group, new Error("The database answered too late or not at all"));
        continue;
      }
      await group.collect(db, names).then(
        () => this.#failed.delete(group.name),
        (error: unknown) => this.#skip(group, error),
      );
    }
    if (names !== null) this.#failed.delete("site_names");
  }

  #skip(group: GaugeGroup, error: unknown): void {
    group.forget();
    this.#fail(group.name, error);
  }

  /** For each group of gauges, the log gets one line at the first failed read, not one line for each scrape. */
  #fail(group: string, error: unknown): null {
    collectErrors.add({ group });
    if (!this.#failed.has(group)) this.#about.log.warn("metrics could not be read", { group, error });
    this.#failed.add(group);
    return null;
  }
}
