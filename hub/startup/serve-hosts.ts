import { composeBootstrapScript } from "../../cloud-init/bootstrap-script.ts";
import type { SiteId } from "../../shared/ids.ts";
import type { Log } from "../../shared/log.ts";
import { VERSION } from "../../shared/version.ts";
import type { Database } from "../db/client.ts";
import { type AgentListener, startAgentListener } from "../gateway/agent-listener.ts";
import { agentPackageUrl } from "../gateway/agent-package-route.ts";
import { AgentPackages } from "../gateway/agent-packages.ts";
import type { HubAuthority } from "../gateway/hub-authority.ts";
import type { MaasPort } from "../maas/port.ts";
import { hostOf, portOf } from "../outbound/addresses.ts";
import { ownPlaces } from "../outbound/own-places.ts";
import type { FirstBoot } from "../workflows/services.ts";
import type { HubIdentity } from "./hub-identity.ts";
import { inputResolvers } from "./site-services.ts";

interface HostServerOptions {
  readonly at: { readonly host: string; readonly port: number };
  readonly agentUrl: string;
  readonly agentPackageDir: string;
  readonly heartbeatMinTtlMs: number;
  readonly hubId: string;
  readonly database: Database;
  readonly databaseUrl: string;
  readonly identity: HubIdentity;
  readonly maas: (siteId: SiteId) => Promise<MaasPort>;
  readonly onTaskEnded: () => void;
  readonly log: Log;
  /** Ends the hub if the agent listener cannot start. The agent listener may fail after the rest of the hub has started. */
  readonly fail: (error: unknown) => void;
}

interface HostServer {
  readonly firstBoot: FirstBoot;
  sessions(): number;
  close(): Promise<void>;
}

/**
 * Starts the parts of a hub that hosts use: the agent listener, and the facts for the first boot. The parts for hosts need the hub's keys, so they
 * start when the secret store has returned the keys. Agents repeat their attempts to connect until the agent listener starts.
 */
export async function serveHosts(options: HostServerOptions): Promise<HostServer> {
  const { agentUrl, identity, log, fail } = options;
  const packages = new AgentPackages(options.agentPackageDir, log);
  let agents: AgentListener | null = null;
  const listening = identity.opened.then(async (keys) => {
    if (keys !== null) agents = await listen(options, packages, keys);
  });
  const given = new URL(agentUrl);
  const leave = ownPlaces.add(hostOf(given), portOf(given));
  const close = async (): Promise<void> => {
    leave();
    await identity.close();
    await listening.catch(() => undefined);
    await agents?.close();
  };
  if (identity.isOpen) await listening;
  else listening.catch(fail);
  return {
    close,
    sessions: () => agents?.sessions() ?? 0,
    firstBoot: {
      agentUrl,
      keys: () => {
        const { ca, signer } = identity.keys();
        return { caBundlePem: ca.caPem, taskSigningPublicKey: signer.publicKey };
      },
      agentPackage: async (architecture) => {
        const newest = await packages.newest(architecture);
        return newest && { url: agentPackageUrl(agentUrl, newest.sha256), sha256: newest.sha256 };
      },
    },
  };
}

function listen(
  { at, agentUrl, heartbeatMinTtlMs, hubId, database, databaseUrl, maas, onTaskEnded, log }: HostServerOptions,
  packages: AgentPackages,
  authority: HubAuthority,
): Promise<AgentListener> {
  const { ca, signer } = authority;
  return startAgentListener({
    db: database.db,
    inTx: database.inTx,
    databaseUrl,
    hubId,
    hubVersion: VERSION,
    ca,
    signer,
    trustChain: () => authority.chain,
    serverNames: [...new Set([new URL(agentUrl).hostname.replace(/^\[|\]$/g, ""), "localhost", "127.0.0.1"])],
    ...at,
    heartbeatMinTtlMs,
    resolveInput: inputResolvers(database.db, maas),
    onTaskEnded,
    packages,
    bootstrapScript: async ({ nodeId, generation, token }) => {
      const offered = await packages.newestOfEach();
      return composeBootstrapScript({
        nodeId,
        generation,
        hub: { agentUrl, caBundlePem: ca.caPem, taskSigningPublicKey: signer.publicKey },
        enrollmentToken: token.reveal(),
        packages: Object.fromEntries(
          offered.map(({ architecture, sha256 }) => [architecture, { url: agentPackageUrl(agentUrl, sha256), sha256 }]),
        ),
        renderedAt: Math.floor(Date.now() / 1000),
      });
    },
    log,
  });
}
