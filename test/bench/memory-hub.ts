import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { openDatabase } from "../../hub/db/client.ts";
import { startEmbeddedPostgres } from "../../hub/db/embedded/embedded-postgres.ts";
import { sql } from "../../hub/db/orm.ts";
import { openTaskSigner } from "../../hub/gateway/task-signer.ts";
import { createNode } from "../../hub/node/create-node.ts";
import { issueEnrollmentToken } from "../../hub/node/enrollment-tokens.ts";
import { SECRET_PATHS } from "../../hub/secrets/port.ts";
import { openSealedFileStore } from "../../hub/secrets/sealed-file.ts";
import { NodeId, type SiteId } from "../../shared/ids.ts";
import { startChild } from "../support/child.ts";
import { quietLog } from "../support/log.ts";
import { insertSite } from "../support/site.ts";

export interface MemoryHub {
  readonly pid: number;
  readonly port: number;
  readonly ca: string;
  readonly taskSigningPublicKey: string;
  addNode(hostname: string): Promise<{ nodeId: NodeId; token: string }>;
  /** Returns the number of rows in all database tables to which a host's requests can add rows. */
  rows(): Promise<number>;
  stop(): Promise<void>;
}

export async function startMemoryHub(stateDir: string, port: number): Promise<MemoryHub> {
  const postgres = await startEmbeddedPostgres({ stateDir: join(stateDir, "postgres-home"), log: quietLog });
  const hub = startChild({
    name: "hub",
    script: "hub/main.ts",
    env: {
      DATABASE_URL: postgres.url,
      MUSTER_STATE_DIR: join(stateDir, "hub"),
      MUSTER_HTTP_PORT: "0",
      MUSTER_AGENT_HOST: "127.0.0.1",
      MUSTER_AGENT_PORT: String(port),
      MUSTER_AGENT_URL: `https://127.0.0.1:${port}`,
      MUSTER_HEARTBEAT_MIN_TTL_MS: "10000",
    },
    logFile: join(stateDir, "hub.log"),
  });
  const close = async (): Promise<void> => {
    await hub.stop();
    await postgres.stop();
  };
  try {
    await hub.ready;
    const secrets = await openSealedFileStore({ directory: join(stateDir, "hub", "secrets") });
    const { certificate_pem: ca = "" } = await secrets.read(SECRET_PATHS.certificateAuthority);
    const database = openDatabase({
      url: postgres.url,
      poolSize: 4,
      applicationName: "muster-bench",
      log: quietLog,
    });
    const siteId = await insertSite(database.db, { name: "bench", status: "disabled" });
    return {
      pid: hub.pid,
      port,
      ca,
      taskSigningPublicKey: (await openTaskSigner(secrets)).publicKey,
      addNode: (hostname) => addNode(database, siteId, hostname),
      rows: async () => {
        const { rows } = await database.db.execute<{ n: number }>(sql`select (
          (select count(*) from readiness_signals) + (select count(*) from node_conditions) +
          (select count(*) from node_events) + (select count(*) from node_certificates))::int as n`);
        return rows[0]?.n ?? Number.NaN;
      },
      stop: async () => {
        await database.close();
        await close();
      },
    };
  } catch (error) {
    await close();
    throw error;
  }
}

type Database = ReturnType<typeof openDatabase>;

async function addNode(
  { inTx }: Database,
  siteId: SiteId,
  hostname: string,
): Promise<{ nodeId: NodeId; token: string }> {
  const nodeId = NodeId.parse(randomUUID());
  const { token } = await inTx(async (tx) => {
    await createNode(tx, {
      id: nodeId,
      hostname,
      siteId,
      sku: "none",
      gpusTotal: 0,
      regionCode: "b",
      onboardingMode: "maas",
      owner: "onboarding",
    });
    return issueEnrollmentToken(tx, {
      nodeId,
      workflowId: null,
      generation: 1,
      maasSystemId: null,
      boundMacs: [],
      ttlSeconds: 3600,
    });
  });
  return { nodeId, token: token.reveal() };
}
