import type { BlockList } from "node:net";
import { Console } from "../console/console.ts";
import { type HubFacts, watchEventLoop } from "../diagnostics/facts.ts";
import { diagnosticsOf } from "../diagnostics/take.ts";
import { EventFeed } from "../events/event-feed.ts";
import { startWebhookSender } from "../events/webhook-sender.ts";
import { forgetAdminToken, isAdminToken } from "../http/admin-token.ts";
import { createAdminApp } from "../http/app.ts";
import type { ApiDependencies } from "../http/deps.ts";
import { metricsApp } from "../http/metrics-listener.ts";
import { startAdminServer } from "../http/server.ts";
import { openTlsFiles, type TlsFiles, type TlsPaths } from "../http/tls-files.ts";
import { type Metrics, openMetrics } from "../metrics/metrics.ts";
import { openSignIn, type SignInSettings } from "../sign-in/open-sign-in.ts";

type Api = Pick<
  ApiDependencies,
  | "agentUrl"
  | "approvalHours"
  | "nicoOrg"
  | "auditHeads"
  | "caBundlePem"
  | "authority"
  | "db"
  | "inTx"
  | "secrets"
  | "workflows"
  | "log"
  | "probe"
  | "compareRegion"
  | "maasFacts"
>;
export type Facts = Omit<HubFacts, "eventLoop">;

/** The separate listener for the metrics; without a port for it, only the admin listener serves the metrics. */
export interface MetricsSettings {
  readonly host: string;
  readonly port: number | null;
  readonly tokenFile: string | null;
}

interface OperatorServerOptions extends Api {
  readonly at: {
    readonly host: string;
    readonly port: number;
    readonly tls: TlsPaths | null;
    readonly proxies: BlockList | null;
  };
  readonly adminTokenFile: string;
  readonly signInSettings: SignInSettings;
  readonly facts: Facts;
  readonly metrics: MetricsSettings;
  readonly databaseUrl: string;
  readonly auditHeadsLost: () => number;
  /** Returns the time at which the hub's CA for agents expires, or null before the secret store has returned the CA. */
  readonly caEnd: () => Date | null;
}

/** Starts the parts of a hub that operators and their programs use: the API, the page, events, and diagnostics. */
export async function serveOperators(
  options: OperatorServerOptions,
): Promise<{ port: number; close(): Promise<void> }> {
  const { at, adminTokenFile, log, db, inTx, secrets } = options;
  const tls = at.tls === null ? null : await openTlsFiles(at.tls, log.with({ part: "api" }));
  const events = new EventFeed(db, log.with({ part: "events" }));
  const sender = startWebhookSender({ db, inTx, secrets, feed: events, log: log.with({ part: "webhooks" }) });
  const signIn = await openSignIn(options.signInSettings, log.with({ part: "sign-in" }));
  const eventLoop = watchEventLoop();
  const facts: HubFacts = { ...options.facts, eventLoop };
  const { hubId, version, agents, secretStore } = facts;
  const metrics = openMetrics({
    databaseUrl: options.databaseUrl,
    log: log.with({ part: "metrics" }),
    facts: {
      version,
      agents,
      pool: facts.pool,
      secretStoreUsable: () => secretStore().code === "ok",
      auditHeadsLost: options.auditHeadsLost,
      certificates: () => ({ hub_ca: options.caEnd(), admin_listener: tls?.notAfter() ?? null }),
    },
  });
  const console = new Console({ stateDir: facts.stateDir, log: log.with({ part: "console" }) });
  const app = createAdminApp({
    ...options,
    console,
    proxies: at.proxies,
    events,
    metrics,
    signIn,
    log: log.with({ part: "api" }),
    secretStore,
    takeDiagnostics: diagnosticsOf(facts, inTx),
    isAdminToken: (token) => isAdminToken(adminTokenFile, token),
    forgetAdminToken: () => forgetAdminToken(adminTokenFile),
    status: () => ({ hub_id: hubId, version, agents: agents() }),
  });
  const server = await startAdminServer(app, { ...at, tls });
  const scraped = await startMetricsListener(options, metrics, tls);
  return {
    port: server.port,
    close: async () => {
      // The hub closes its event streams before it closes the server, because the server waits for the end of the streams.
      events.close();
      await server.close();
      await console.close();
      await scraped?.close();
      await metrics.close();
      eventLoop.close();
      await sender.close();
    },
  };
}

/** Opens the separate listener for the metrics, if the settings name its port. */
async function startMetricsListener(
  { metrics: at, log }: Pick<OperatorServerOptions, "metrics" | "log">,
  metrics: Metrics,
  tls: TlsFiles | null,
): Promise<{ close(): Promise<void> } | null> {
  if (at.port === null) return null;
  const app = metricsApp(metrics, at.tokenFile, log.with({ part: "metrics" }));
  const { port, close } = await startAdminServer(app, { host: at.host, port: at.port, tls });
  log.info("metrics are served", { host: at.host, port, tls: tls !== null, token: at.tokenFile !== null });
  return { close };
}
