import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { request } from "node:https";
import { join } from "node:path";
import { WebSocket } from "ws";
import { makeKey, makeRequest } from "../../agent/x509.ts";
import { openDatabase } from "../../hub/db/client.ts";
import { startEmbeddedPostgres } from "../../hub/db/embedded/embedded-postgres.ts";
import { maasSites } from "../../hub/db/schema/index.ts";
import { createNode } from "../../hub/node/create-node.ts";
import { issueEnrollmentToken } from "../../hub/node/enrollment-tokens.ts";
import { SECRET_PATHS } from "../../hub/secrets/port.ts";
import { openSealedFileStore } from "../../hub/secrets/sealed-file.ts";
import { EnrollResponse } from "../../shared/api/enroll.ts";
import { NodeId } from "../../shared/ids.ts";
import { PROTOCOL_VERSION } from "../../shared/protocol/version.ts";
import { startChild } from "../support/child.ts";
import { quietLog } from "../support/log.ts";
import type { Figure } from "./figure.ts";

const AGENTS = 1_000;
const SETTLE_MS = 5_000;

interface SimulatedAgent {
  readonly nodeId: NodeId;
  readonly key: string;
  readonly certificate: string;
}

/** Resident memory of a hub process with no agent and with a thousand, each a WebSocket over mutual TLS that beats. */
export async function measureAgentMemory(stateDir: string, port: number): Promise<Figure[]> {
  const postgres = await startEmbeddedPostgres({ stateDir: join(stateDir, "postgres-home"), log: quietLog });
  const hub = startChild({
    name: "hub",
    script: "hub/main.ts",
    nodeArgs: ["--expose-gc"],
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
  try {
    await hub.ready;
    const { certificate_pem: ca = "" } = await (
      await openSealedFileStore({ directory: join(stateDir, "hub", "secrets") })
    ).read(SECRET_PATHS.certificateAuthority);
    const agents = await enrollAll(postgres.url, port, ca);
    const before = await settledRss(hub.pid);
    const sockets = await connectAll(agents, port, ca);
    const after = await settledRss(hub.pid);
    for (const socket of sockets) socket.terminate();
    return [
      {
        name: "hub memory with no agent",
        value: before / 1024,
        unit: "MiB",
        note: "resident set, after 1,000 enrollments",
      },
      {
        name: `hub memory with ${AGENTS} agents`,
        value: after / 1024,
        unit: "MiB",
        note: "resident set, mutual TLS, heartbeats on",
      },
      {
        name: "hub memory per connected agent",
        value: (after - before) / AGENTS,
        unit: "KiB",
        note: "difference of the two",
      },
    ];
  } finally {
    await hub.stop();
    await postgres.stop();
  }
}

async function settledRss(pid: number): Promise<number> {
  await new Promise((done) => setTimeout(done, SETTLE_MS));
  const kib = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  if (kib === undefined) throw new Error(`process ${pid} has no VmRSS`);
  return Number(kib);
}

async function enrollAll(databaseUrl: string, port: number, ca: string): Promise<SimulatedAgent[]> {
  const { db, inTx, close } = openDatabase({
    url: databaseUrl,
    poolSize: 4,
    applicationName: "muster-bench",
    log: quietLog,
  });
  const [site] = await db
    .insert(maasSites)
    .values({
      name: "bench",
      regionCode: "b",
      apiBaseUrl: "http://127.0.0.1:1/MAAS",
      status: "disabled",
      pxeIface: "e",
      pxeVlanVid: 1,
      nodePxeIface: "e",
      deployUser: "u",
      deploySshIface: "e",
      upstreamDnsServers: [],
    })
    .returning({ id: maasSites.id });
  if (site === undefined) throw new Error("no site");
  const agents: SimulatedAgent[] = [];
  for (let index = 0; index < AGENTS; index += 1) {
    const nodeId = NodeId.parse(randomUUID());
    const { token } = await inTx(async (tx) => {
      await createNode(tx, {
        id: nodeId,
        hostname: `bench-${index}`,
        siteId: site.id,
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
    const key = await makeKey();
    const body = {
      protocol_version: PROTOCOL_VERSION,
      node_id: nodeId,
      token: token.reveal(),
      csr_pem: await makeRequest(key, nodeId),
      hostname: `bench-${index}`,
      boot_id: nodeId,
      agent_version: "bench",
      macs: [],
    };
    agents.push({ nodeId, key, certificate: EnrollResponse.parse(await post(port, ca, body)).certificate_pem });
  }
  await close();
  return agents;
}

function post(port: number, ca: string, body: unknown): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const outgoing = request(
      {
        host: "127.0.0.1",
        port,
        ca,
        path: "/internal/v1/nodes/enroll",
        method: "POST",
        headers: { "content-type": "application/json" },
      },
      (answer) => {
        let text = "";
        answer.setEncoding("utf8").on("data", (chunk: string) => {
          text += chunk;
        });
        answer.on("end", () =>
          answer.statusCode === 200
            ? resolve(JSON.parse(text))
            : reject(new Error(`enrollment answered ${answer.statusCode}: ${text}`)),
        );
      },
    );
    outgoing.on("error", reject);
    outgoing.end(JSON.stringify(body));
  });
}

async function connectAll(agents: readonly SimulatedAgent[], port: number, ca: string): Promise<WebSocket[]> {
  const sockets: WebSocket[] = [];
  for (let at = 0; at < agents.length; at += 20)
    sockets.push(...(await Promise.all(agents.slice(at, at + 20).map((agent) => connect(agent, port, ca)))));
  return sockets;
}

function connect(agent: SimulatedAgent, port: number, ca: string): Promise<WebSocket> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(`wss://127.0.0.1:${port}/internal/v1/nodes/${agent.nodeId}/connect`, {
      ca,
      cert: agent.certificate,
      key: agent.key,
      perMessageDeflate: false,
    });
    socket.once("error", reject);
    socket.once("open", () =>
      socket.send(
        JSON.stringify({
          type: "hello",
          protocol_version: PROTOCOL_VERSION,
          agent_version: "bench",
          node_id: agent.nodeId,
          generation: 1,
          boot_id: agent.nodeId,
          journal: [],
        }),
      ),
    );
    socket.once("message", () => {
      let seq = 0;
      const beat = setInterval(() => socket.send(JSON.stringify({ type: "heartbeat", seq: ++seq })), 5_000);
      socket.once("close", () => clearInterval(beat));
      resolve(socket);
    });
  });
}
