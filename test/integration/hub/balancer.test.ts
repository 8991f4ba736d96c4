/** Runs the configuration of HAProxy that docs/operate.md shows, in front of two hubs. */
import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import { join } from "node:path";
import { execa, execaSync } from "execa";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { sql } from "../../../hub/db/orm.ts";
import { nodes } from "../../../hub/db/schema/index.ts";
import { openCertificateAuthority } from "../../../hub/gateway/certificate-authority.ts";
import { openTaskSigner } from "../../../hub/gateway/task-signer.ts";
import { issueEnrollmentToken } from "../../../hub/node/enrollment-tokens.ts";
import { openSealedFileStore } from "../../../hub/secrets/sealed-file.ts";
import { NodeId } from "../../../shared/ids.ts";
import { TestAuthority } from "../../fakes/hub/authority.ts";
import { AgentHosts, prepareHost } from "../../support/agent-hosts.ts";
import type { Child } from "../../support/child.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { readOf } from "../../support/documents.ts";
import { freePort } from "../../support/free-port.ts";
import { type HubPorts, startHubProcess } from "../../support/hub-process.ts";
import { newHubFolder, removeHubState } from "../../support/hub-state.ts";
import { until } from "../../support/until.ts";

const hasHaproxy = execaSync("haproxy", ["-v"], { reject: false }).exitCode === 0;
if (!hasHaproxy) process.stderr.write("SKIPPED: HAProxy is not installed (Debian package haproxy)\n");

const folder = newHubFolder("muster-balancer-");
const shared = join(folder, "shared");
const nodeId = NodeId.parse(randomUUID());
const hosts = new AgentHosts();
let database: TestDatabase;
let ports: HubPorts;
let front: HubPorts;
let statistics: number;
let caPem: string;
let balancer: ChildProcess;
let hubs: Child[] = [];

/** The two hubs have two addresses of this computer, and the same ports, as in the documented configuration. */
const ADDRESSES = ["127.0.0.11", "127.0.0.12"];

/** Returns the documented configuration with the addresses, ports and the file of the test, and with HAProxy's statistics. */
function configuration(): string {
  const [, text = ""] = /```\n(defaults\n[\s\S]*?)```/.exec(readOf("docs/operate.md")) ?? [];
  return text
    .replace("bind :443 ssl crt /etc/haproxy/muster.pem", `bind 127.0.0.1:${front.http} ssl crt ${folder}/muster.pem`)
    .replace("bind :8481", `bind 127.0.0.1:${front.agent}`)
    .replaceAll("10.0.0.11", ADDRESSES[0] ?? "")
    .replaceAll("10.0.0.12", ADDRESSES[1] ?? "")
    .replaceAll("8480", String(ports.http))
    .replaceAll("8481", String(ports.agent))
    .concat(`listen statistics\n bind 127.0.0.1:${statistics}\n mode http\n stats enable\n stats uri /\n`);
}

/** At its start, HAProxy takes each hub for healthy. `passedChecks` counts the checks of the hubs that have succeeded since. */
async function passedChecks(): Promise<number> {
  const csv = await (await fetch(`http://127.0.0.1:${statistics}/;csv`)).text();
  return csv.split("\n").filter((line) => /^[^,]*,hub-\d,/.test(line) && line.includes(",L7OK,")).length;
}

const startHub = (address: string, index: number): Child =>
  startHubProcess({
    databaseUrl: database.url,
    stateDir: join(folder, `hub-${index}`),
    ports,
    env: {
      MUSTER_SHARED_DIR: shared,
      MUSTER_HTTP_HOST: address,
      MUSTER_AGENT_HOST: address,
      MUSTER_AGENT_URL: `https://127.0.0.1:${front.agent}`,
      MUSTER_HTTP_PROXIES: "127.0.0.1",
      MUSTER_HEARTBEAT_MIN_TTL_MS: "3000",
    },
    logFile: join(folder, `hub-${index}.log`),
  });

/** Asks the API at the address of the balancer. */
async function ask(method: string, path: string, body?: object): Promise<{ status: number; body: { id: string } }> {
  const token = readFileSync(join(shared, "admin-token"), "utf8").trim();
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const at = { host: "127.0.0.1", port: front.http, path, method, ca: caPem, headers, agent: false };
    request(at, resolve)
      .on("error", reject)
      .end(body === undefined ? undefined : JSON.stringify(body));
  });
  const text = Buffer.concat(await answer.toArray()).toString();
  return {
    status: answer.statusCode ?? 0,
    body: answer.headers["content-type"]?.includes("json") ? JSON.parse(text) : {},
  };
}

async function sessionAt(): Promise<string | undefined> {
  const { rows } = await database.database.db.execute<{ hub_id: string }>(
    sql`select hub_id from agent_sessions where node_id = ${nodeId} and state = 'open'`,
  );
  return rows[0]?.hub_id;
}
const idOfHub = async (address: string): Promise<string> => {
  const token = readFileSync(join(shared, "admin-token"), "utf8").trim();
  const answer = await fetch(`http://${address}:${ports.http}/api/v1/admin/status`, {
    headers: { authorization: `Bearer ${token}` },
  });
  return ((await answer.json()) as { hub_id: string }).hub_id;
};

/** The agent carries out a task that the API has taken at the address of the balancer. */
async function doTask(): Promise<void> {
  const order = { type: "node.heartbeat_check", input: { nonce: randomUUID() } };
  const task = await until("the API takes a task", async () => {
    const answer = await ask("POST", `/api/v1/admin/nodes/${nodeId}/tasks`, order);
    if (answer.status !== 202) throw new Error(JSON.stringify(answer));
    return answer.body;
  });
  await until("the agent has carried the task out", async () => {
    const { rows } = await database.database.db.execute(
      sql`select from tasks where id = ${task.id} and state = 'succeeded'`,
    );
    return rows.length > 0 ? true : undefined;
  });
}

describe.skipIf(!hasHaproxy)("the documented configuration of HAProxy", () => {
  beforeAll(async () => {
    database = await createTestDatabase();
    [ports, front] = [
      { http: await freePort(ADDRESSES[0]), agent: await freePort(ADDRESSES[0]) },
      { http: await freePort(), agent: await freePort() },
    ];
    statistics = await freePort();
    mkdirSync(shared, { recursive: true });
    hubs = ADDRESSES.map(startHub);
    const authority = await TestAuthority.make();
    caPem = authority.caPem;
    const { cert, key } = await authority.server(new Date(Date.now() + 86_400_000));
    writeFileSync(join(folder, "muster.pem"), `${cert}\n${key}`);
    writeFileSync(join(folder, "haproxy.cfg"), configuration());
    await Promise.all(hubs.map((hub) => hub.ready));
    balancer = spawn("haproxy", ["-db", "-f", join(folder, "haproxy.cfg")], { stdio: "ignore" });
    const checks = 2 * ADDRESSES.length;
    await until("each hub passes both checks", async () => ((await passedChecks()) === checks ? true : undefined));
  });
  afterAll(async () => {
    await hosts.end();
    balancer?.kill("SIGKILL");
    await Promise.all(hubs.map((hub) => hub.stop()));
    await database?.drop();
    removeHubState(folder);
  });

  it("has no warning", async () => {
    const checked = await execa("haproxy", ["-c", "-f", join(folder, "haproxy.cfg")], { reject: false, all: true });
    expect({ exitCode: checked.exitCode, warnings: /WARNING|ALERT/.exec(checked.all ?? "") }).toEqual({
      exitCode: 0,
      warnings: null,
    });
  });

  it("an agent whose hub is killed connects to the other hub and carries a task out there", async () => {
    const { db, inTx } = database.database;
    const about = { gpusTotal: 8, regionCode: "r1", status: "active", onboardingMode: "maas" } as const;
    await db.insert(nodes).values({ id: nodeId, hostname: "gpu-01", sku: "g1", ...about });
    const secrets = await openSealedFileStore({ directory: join(shared, "secrets") });
    const { token } = await inTx((tx) =>
      issueEnrollmentToken(tx, {
        nodeId,
        workflowId: null,
        generation: 1,
        maasSystemId: "abc123",
        boundMacs: [],
        ttlSeconds: 600,
      }),
    );
    const host = hosts.add();
    const { caPem: hubCa } = await openCertificateAuthority(secrets);
    const { publicKey: orderKey } = await openTaskSigner(secrets);
    const known = { url: `https://127.0.0.1:${front.agent}`, caPem: hubCa, orderKey };
    prepareHost(host, known, { nodeId, token: token.reveal() });
    hosts.start(host);
    const connected = async (former?: string): Promise<string> => {
      const at = await sessionAt();
      if (at === undefined || at === former) throw new Error(host.read("agent.log").slice(-2_000));
      return at;
    };
    const first = await until("the agent is connected", connected);
    await doTask();

    const ids = await Promise.all(ADDRESSES.map(idOfHub));
    expect(ids).toContain(first);
    hubs[ids.indexOf(first)]?.kill("SIGKILL");
    await until("the agent is connected to the other hub", () => connected(first));
    await doTask();
    expect((await ask("GET", "/readyz")).status).toBe(200);
  });
});
