import { type HubFacts, watchEventLoop } from "../diagnostics/facts.ts";
import { diagnosticsOf } from "../diagnostics/take.ts";
import { EventFeed } from "../events/event-feed.ts";
import { startWebhookSender } from "../events/webhook-sender.ts";
import { isAdminToken } from "../http/admin-token.ts";
import { createAdminApp } from "../http/app.ts";
import type { ApiDependencies } from "../http/deps.ts";
import { startAdminServer } from "../http/server.ts";
import { openTlsFiles, type TlsPaths } from "../http/tls-files.ts";

type Api = Pick<
  ApiDependencies,
  "agentUrl" | "caBundlePem" | "authority" | "db" | "inTx" | "secrets" | "workflows" | "log" | "probe" | "compareRegion"
>;
export type Facts = Omit<HubFacts, "eventLoop">;

interface OperatorServerOptions extends Api {
  readonly at: { readonly host: string; readonly port: number; readonly tls: TlsPaths | null };
  readonly adminTokenFile: string;
  readonly facts: Facts;
}

/** Starts the parts of a hub that operators and their programs use: the API, the page, events, and diagnostics. */
export async function serveOperators(
  options: OperatorServerOptions,
): Promise<{ port: number; close(): Promise<void> }> {
  const { at, adminTokenFile, log, db, inTx, secrets } = options;
  const tls = at.tls === null ? null : await openTlsFiles(at.tls, log.with({ part: "api" }));
  const events = new EventFeed(db, log.with({ part: "events" }));
  const sender = startWebhookSender({ db, inTx, secrets, feed: events, log: log.with({ part: "webhooks" }) });
  const eventLoop = watchEventLoop();
  const facts: HubFacts = { ...options.facts, eventLoop };
  const { hubId, version, agents, secretStore } = facts;
  const app = createAdminApp({
    ...options,
    events,
    log: log.with({ part: "api" }),
    secretStore,
    takeDiagnostics: diagnosticsOf(facts, inTx),
    isAdminToken: (token) => isAdminToken(adminTokenFile, token),
    status: () => ({ hub_id: hubId, version, agents: agents() }),
  });
  const server = await startAdminServer(app, { ...at, tls });
  return {
    port: server.port,
    close: async () => {
      // The hub closes its event streams before it closes the server, because the server waits for the end of the streams.
      events.close();
      await server.close();
      eventLoop.close();
      await sender.close();
    },
  };
}
