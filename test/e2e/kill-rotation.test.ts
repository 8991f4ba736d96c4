import { randomUUID } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { Client } from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LOCK_CLASSES } from "../../hub/db/advisory-locks.ts";
import { eq, sql } from "../../hub/db/orm.ts";
import { readTask } from "../../hub/db/queries/task-reads.ts";
import { enqueueTask } from "../../hub/db/queries/tasks.ts";
import { agentSessions, nodes } from "../../hub/db/schema/index.ts";
import { HubAuthority } from "../../hub/gateway/hub-authority.ts";
import { issueEnrollmentToken } from "../../hub/node/enrollment-tokens.ts";
import { SECRET_PATHS, type SecretStore } from "../../hub/secrets/port.ts";
import { openSealedFileStore } from "../../hub/secrets/sealed-file.ts";
import { NodeId } from "../../shared/ids.ts";
import { HostFolder } from "../fakes/hub/host-folder.ts";
import { type Child, startChild } from "../support/child.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { freeHubPorts, type HubPorts, startHubProcess } from "../support/hub-process.ts";
import { memoryFolder } from "../support/memory-folder.ts";
import { until } from "../support/until.ts";

/**
 * The test kills a hub at each step of a rotation of its keys, and starts another hub with the same data. The test holds the lock of
 * `authority_statements`, so that the hub waits for the lock when the test kills it.
 */
const AUTHORITY = "/api/v1/admin/authority";
const folder = mkdtempSync(join(memoryFolder(), "muster-kill-rotation-"));
const host = new HostFolder();
let database: TestDatabase;
let ports: HubPorts;
let hub: Child;
let agent: Child;
let secrets: SecretStore;
let nodeId: NodeId;

beforeAll(async () => {
  database = await createTestDatabase();
  ports = await freeHubPorts();
  await startHub();
  secrets = await openSealedFileStore({ directory: join(folder, "hub/secrets") });
  nodeId = await addHost();
  agent = startChild({
    name: "agent",
    script: "agent/main.ts",
    env: { MUSTER_ROOT: host.root },
    logFile: join(folder, "agent.log"),
  });
  await obeys();
});
afterAll(async () => {
  await agent?.stop();
  await hub?.stop();
  await database?.drop();
  host.remove();
  rmSync(folder, { recursive: true, force: true });
});

async function startHub(): Promise<void> {
  hub = startHubProcess({
    databaseUrl: database.url,
    stateDir: join(folder, "hub"),
    ports,
    env: { MUSTER_DATABASE_POOL_SIZE: "6", MUSTER_HEARTBEAT_MIN_TTL_MS: "3000" },
    logFile: join(folder, "hub.log"),
  });
  await hub.ready;
}
async function kill(): Promise<void> {
  hub.kill("SIGKILL");
  expect((await hub.gone).signal).toBe("SIGKILL");
}
const db = () => database.database.db;

async function addHost(): Promise<NodeId> {
  const id = NodeId.parse(randomUUID());
  await db().insert(nodes).values({
    id,
    hostname: "killed-hub",
    sku: "g1",
    gpusTotal: 8,
    regionCode: "r1",
    status: "active",
    onboardingMode: "maas",
  });
  const about = { workflowId: null, generation: 1, maasSystemId: "abc123", boundMacs: [], ttlSeconds: 600 };
  const { token } = await database.database.inTx((tx) => issueEnrollmentToken(tx, { nodeId: id, ...about }));
  const { ca, signer } = await HubAuthority.open({ db: db(), secrets });
  host.tool("systemctl");
  host.write("etc/muster/ca.pem", ca.caPem);
  host.write("etc/muster/enrollment-token", token.reveal(), 0o600);
  const config = {
    hub_url: `https://127.0.0.1:${ports.agent}`,
    node_id: id,
    generation: 1,
    enrollment_token_file: "/etc/muster/enrollment-token",
    ca_file: "/etc/muster/ca.pem",
    task_signing_public_key: signer.publicKey,
  };
  host.write("etc/muster/agent.json", JSON.stringify(config), 0o600);
  return id;
}

/** Checks that the agent is connected and carries out an order that the hub signs with its current key. */
async function obeys(): Promise<void> {
  const { task } = await database.database.inTx((tx) =>
    enqueueTask(tx, {
      nodeId,
      type: "node.heartbeat_check",
      input: { nonce: "n" },
      idempotencyKey: `test:${performance.now()}`,
      deadlineSeconds: 600,
    }),
  );
  const ended = await until("the task to end", async () => {
    const now = await readTask(db(), task.id);
    return now?.finishedAt == null ? undefined : now;
  });
  expect(ended).toMatchObject({ state: "succeeded", errorCode: null });
}
const knows = (sequence: number) =>
  until(`the host to know statement ${sequence}`, async () => {
    const [session] = await db().select().from(agentSessions).where(eq(agentSessions.nodeId, nodeId));
    return session?.trustSequence === sequence ? true : undefined;
  });

interface Answer {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: the route's own schema describes it
  readonly body: any;
}
async function ask(method: string, path: string, body?: unknown, key?: string): Promise<Answer> {
  const token = readFileSync(join(folder, "hub/admin-token"), "utf8").trim();
  const headers: Record<string, string> = { authorization: `Bearer ${token}` };
  if (body !== undefined) headers["content-type"] = "application/json";
  if (key !== undefined) headers["idempotency-key"] = key;
  const response = await fetch(`http://127.0.0.1:${ports.http}${path}`, {
    method,
    headers,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: await response.json() };
}
const rotate = (verb: "" | "/finish" | "/abort", key: string) =>
  ask("POST", `${AUTHORITY}/rotation${verb}`, { reason: "killed" }, key);
const statements = async (): Promise<string[]> => {
  const { rows } = await db().execute<{ kind: string }>(sql`select kind from authority_statements order by sequence`);
  return rows.map(({ kind }) => kind);
};

async function killedInside(request: () => Promise<Answer>): Promise<void> {
  const holder = new Client({ connectionString: database.url });
  await holder.connect();
  const lock = LOCK_CLASSES.authority_statements;
  try {
    await holder.query("select pg_advisory_lock($1::int, hashtext(''))", [lock]);
    const lost = request().then(
      () => "answered",
      () => "lost",
    );
    await until("the request to wait for its place", async () => {
      const { rows } = await holder.query(
        `select 1 from pg_locks where locktype = 'advisory' and not granted and classid = $1::int
           and database = (select oid from pg_database where datname = current_database())`,
        [lock],
      );
      return rows.length > 0 ? true : undefined;
    });
    await kill();
    expect(await lost).toBe("lost");
  } finally {
    await holder.end();
  }
  await startHub();
}
/** Sends a rotation request to the hub, kills the hub once the database has the new statement about keys, and restarts the hub. */
async function killedAfter(request: () => Promise<Answer>, count: number): Promise<void> {
  const answer = request().catch(() => null);
  await until("the statement to be there", async () => ((await statements()).length === count ? true : undefined), {
    everyMs: 1,
  });
  await kill();
  await answer;
  await startHub();
}
/**
 * A hub announces the end of a key rotation to its hosts half a minute after it has written the end. To skip the half minute before the announcement,
 * the test moves the times of all statements about keys back by 31 seconds.
 */
const halfMinuteLater = () =>
  db().execute(sql`update authority_statements set created_at = created_at - interval '31 seconds'`);
const orderKeyOf = async (generation: number): Promise<string | undefined> =>
  (await secrets.read(SECRET_PATHS.laterTaskSigningKey(generation)))["private_key_pem"];

describe("kill -9 of the hub during a rotation of its keys", () => {
  it("leaves no rotation when it comes after the keys and before their statement, and the next attempt uses the same keys", async () => {
    await killedInside(() => rotate("", "begin-1"));
    expect(await statements()).toEqual([]);
    const made = await orderKeyOf(2);
    expect((await ask("GET", AUTHORITY)).body).toMatchObject({ generation: 1, next: null });
    await obeys();
    expect(await rotate("", "begin-1")).toMatchObject({ status: 201, body: { generation: 2, phase: "announced" } });
    expect(await orderKeyOf(2)).toBe(made);
    await knows(1);
  });

  it("leaves the rotation announced when it comes before the finish or the abort is written", async () => {
    for (const verb of ["/finish", "/abort"] as const) {
      await killedInside(() => rotate(verb, `${verb}-1`));
      expect(await statements()).toEqual(["announce"]);
      expect((await ask("GET", AUTHORITY)).body).toMatchObject({ generation: 1, next: { generation: 2 } });
      await obeys();
    }
  });

  it("leaves the rotation in force when it comes after the finish, and the agent returns with only the new keys", async () => {
    await killedAfter(() => rotate("/finish", "finish-2"), 2);
    expect(await rotate("/finish", "finish-2")).toMatchObject({
      status: 200,
      body: { generation: 2, phase: "in_force" },
    });
    expect(await statements()).toEqual(["announce", "finish"]);
    expect((await ask("GET", AUTHORITY)).body).toMatchObject({ generation: 2, next: null });
    await obeys();
    await halfMinuteLater();
    await knows(2);
    await obeys();
    expect(JSON.parse(host.read("var/lib/muster/agent/trust.json"))).toMatchObject({ sequence: 2, next: null });
  });

  it("leaves half of the next keys when it comes between the two keys, and the next attempt makes the other half", async () => {
    await killedInside(() => rotate("", "begin-3"));
    // The test removes the second of two new keys, as if the hub had been killed after it had stored the first key.
    await secrets.remove(SECRET_PATHS.laterTaskSigningKey(3));
    await kill();
    await startHub();
    await obeys();
    expect(await rotate("", "begin-3")).toMatchObject({ status: 201, body: { generation: 3 } });
    await knows(3);
    expect(await rotate("/abort", "abort-3")).toMatchObject({ body: { phase: "aborted" } });
    await knows(4);
  });

  it("leaves the rotation announced when it comes right after its start, and refuses another start", async () => {
    await killedAfter(() => rotate("", "begin-4"), 5);
    const again = await rotate("", "another");
    expect(again).toMatchObject({ status: 409, body: { code: "conflict" } });
    expect(again.body.detail).toContain("Generation 4 is already announced. Finish or abort");
    expect(await rotate("", "begin-4")).toMatchObject({ status: 201, body: { generation: 4 } });
    await knows(5);
    await obeys();
    expect(await rotate("/finish", "finish-4")).toMatchObject({ body: { generation: 4, phase: "in_force" } });
    await kill();
    await startHub();
    await obeys();
    await halfMinuteLater();
    await knows(6);
  });
});
