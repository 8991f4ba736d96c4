import { gauge, upTo } from "../counted/family.ts";

/** The facts of this hub's process that its gauges show; `hub/main.ts` collects these facts. */
export interface ProcessFacts {
  readonly version: string;
  readonly agents: () => number;
  readonly pool: () => { readonly connections: number; readonly idle: number; readonly waiting: number };
  readonly secretStoreUsable: () => boolean;
  /**
   * The number of heads of the audit chain (entries that once were the newest) that this hub has stored outside the database and that the chain no
   * longer contains.
   */
  readonly auditHeadsLost: () => number;
  /** The times at which the certificates of this hub expire, or null for a certificate that the hub does not have. */
  readonly certificates: () => { readonly hub_ca: Date | null; readonly admin_listener: Date | null };
}

const build = gauge({
  name: "muster_build_info",
  help: "1, with the version of this hub and of its Node.js as labels.",
  labels: { version: upTo(1), node: upTo(1) },
  told: "process",
});
const connected = gauge({
  name: "muster_agents_connected",
  help: "Agents with a session at this hub; add the hubs up.",
  labels: {},
  told: "process",
});
const pool = gauge({
  name: "muster_database_connections",
  help: "Connections of this hub's database pool.",
  labels: { state: ["busy", "idle"] },
  told: "process",
});
const waiting = gauge({
  name: "muster_database_waiting",
  help: "Queries of this hub that wait for a free connection of its database pool.",
  labels: {},
  told: "process",
});
const store = gauge({
  name: "muster_secret_store_usable",
  help: "1 if this hub can use the secret store, 0 if it cannot.",
  labels: {},
  told: "process",
});
const headsLost = gauge({
  name: "muster_audit_heads_lost",
  help: "Ends of the audit chain that this hub has kept outside the database, and that the chain no longer has; a person removes their files after a look.",
  labels: {},
  told: "process",
});
const certificates = gauge({
  name: "muster_certificate_expiry_timestamp_seconds",
  help: "When a certificate of this hub ends, as Unix time: the CA of the agents, or the certificate of the admin listener.",
  labels: { certificate: ["hub_ca", "admin_listener"] },
  told: "process",
});

export const PROCESS_GAUGES = [build, connected, pool, waiting, store, headsLost, certificates] as const;

/** Sets the gauges of this hub's process, without a query. */
export function showProcess(facts: ProcessFacts): void {
  build.show([{ labels: { version: facts.version, node: process.version }, value: 1 }]);
  connected.show([{ labels: {}, value: facts.agents() }]);
  const { connections, idle, waiting: queue } = facts.pool();
  pool.show([
    { labels: { state: "busy" }, value: connections - idle },
    { labels: { state: "idle" }, value: idle },
  ]);
  waiting.show([{ labels: {}, value: queue }]);
  store.show([{ labels: {}, value: facts.secretStoreUsable() ? 1 : 0 }]);
  headsLost.show([{ labels: {}, value: facts.auditHeadsLost() }]);
  const ends = facts.certificates();
  certificates.show(
    (["hub_ca", "admin_listener"] as const).flatMap((certificate) => {
      const end = ends[certificate];
      return end === null ? [] : [{ labels: { certificate }, value: Math.floor(end.getTime() / 1000) }];
    }),
  );
}
