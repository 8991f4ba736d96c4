/** A hub's agent listener on a real database, and functions with which a test acts as a correct or faulty host. */
import { createHash, createPublicKey, randomBytes, randomUUID, verify, webcrypto } from "node:crypto";
import { type Agent, request as httpsRequest } from "node:https";
import { eq, sql } from "../../hub/db/orm.ts";
import { nodeCertificates, nodes, workflows } from "../../hub/db/schema/index.ts";
import { type AgentListener, type AgentListenerOptions, startAgentListener } from "../../hub/gateway/agent-listener.ts";
import { AgentPackages } from "../../hub/gateway/agent-packages.ts";
import { type CertificateAuthority, openCertificateAuthority } from "../../hub/gateway/certificate-authority.ts";
import { openTaskSigner, type TaskSigner } from "../../hub/gateway/task-signer.ts";
import { KEY_ALGORITHM, SIGNING_ALGORITHM, serialOf, x509 } from "../../hub/gateway/x509.ts";
import { issueEnrollmentToken } from "../../hub/node/enrollment-tokens.ts";
import { SECRET_PATHS } from "../../hub/secrets/port.ts";
import { type EnrollRequest, EnrollResponse, nodeUri } from "../../shared/api/enroll.ts";
import { NodeId, WorkflowId } from "../../shared/ids.ts";
import type { NodeStatus } from "../../shared/node-status.ts";
import { orderSigningText, type SignedOrder } from "../../shared/tasks/order.ts";
import { createTestDatabase, type TestDatabase } from "./database.ts";
import { quietLog } from "./log.ts";
import { MemorySecrets } from "./memory-secrets.ts";

export interface HostKey {
  readonly keyPem: string;
  csr(uri: string): Promise<string>;
}

export async function makeKey(): Promise<HostKey> {
  const keys = await webcrypto.subtle.generateKey(KEY_ALGORITHM, true, ["sign", "verify"]);
  const pkcs8 = await webcrypto.subtle.exportKey("pkcs8", keys.privateKey);
  return {
    keyPem: x509.PemConverter.encode(pkcs8, "PRIVATE KEY"),
    csr: async (uri) => {
      const request = await x509.Pkcs10CertificateRequestGenerator.create({
        name: "CN=node",
        keys,
        signingAlgorithm: SIGNING_ALGORITHM,
        extensions: [new x509.SubjectAlternativeNameExtension([{ type: "url", value: uri }])],
      });
      return request.toString("pem");
    },
  };
}

export interface Identity {
  readonly nodeId: NodeId;
  readonly generation: number;
  readonly certPem: string;
  readonly keyPem: string;
}
export interface Answer {
  readonly status: number;
  readonly type: string;
  readonly text: string;
  readonly json: unknown;
  readonly code: string | undefined;
  readonly retryAfter: string | undefined;
}

/** Database tables that a refused request of an agent must not change. */
const WATCHED = [
  "nodes",
  "node_events",
  "enrollment_tokens",
  "node_certificates",
  "agent_sessions",
  "tasks",
  "node_conditions",
  "node_inventories",
  "readiness_signals",
  "report_tokens",
  "domain_events",
];
export type HubOptions = Partial<
  Pick<
    AgentListenerOptions,
    | "host"
    | "limits"
    | "resolveInput"
    | "onTaskEnded"
    | "heartbeatMinTtlMs"
    | "hubId"
    | "log"
    | "packages"
    | "packageWithinMs"
    | "bootstrapScript"
    | "ca"
    | "signer"
    | "trustChain"
  >
>;

export class GatewayRig {
  readonly database: TestDatabase;
  readonly ca: CertificateAuthority;
  readonly signer: TaskSigner;
  listener: AgentListener;
  readonly #secrets: MemorySecrets;
  readonly #options: AgentListenerOptions;
  readonly #others: AgentListener[] = [];

  private constructor(
    database: TestDatabase,
    secrets: MemorySecrets,
    ca: CertificateAuthority,
    signer: TaskSigner,
    options: AgentListenerOptions,
    listener: AgentListener,
  ) {
    this.database = database;
    this.#secrets = secrets;
    this.ca = ca;
    this.signer = signer;
    this.#options = options;
    this.listener = listener;
  }

  static async start(more: HubOptions = {}, given?: TestDatabase): Promise<GatewayRig> {
    const database = given ?? (await createTestDatabase());
    const secrets = new MemorySecrets();
    const ca = more.ca ?? (await openCertificateAuthority(secrets));
    const signer = more.signer ?? (await openTaskSigner(secrets));
    const options: AgentListenerOptions = {
      db: database.database.db,
      inTx: database.database.inTx,
      databaseUrl: database.url,
      hubId: randomUUID(),
      hubVersion: "test",
      ca,
      signer,
      serverNames: ["localhost", "127.0.0.1"],
      host: "127.0.0.1",
      port: 0,
      heartbeatMinTtlMs: 60_000,
      trustChain: () => [],
      resolveInput: {},
      packages: new AgentPackages("/nonexistent", quietLog),
      bootstrapScript: () => Promise.reject(new Error("this rig renders no script")),
      log: quietLog,
      ...more,
    };
    return new GatewayRig(database, secrets, ca, signer, options, await startAgentListener(options));
  }

  get db() {
    return this.database.database.db;
  }
  get inTx() {
    return this.database.database.inTx;
  }

  async secondHub(more: HubOptions = {}): Promise<AgentListener> {
    const listener = await startAgentListener({ ...this.#options, hubId: randomUUID(), ...more });
    this.#others.push(listener);
    return listener;
  }

  async restart(more: HubOptions = {}): Promise<void> {
    await this.listener.close();
    this.listener = await startAgentListener({ ...this.#options, hubId: randomUUID(), ...more });
  }

  async stop(): Promise<void> {
    await Promise.all([this.listener, ...this.#others].map((listener) => listener.close()));
    await this.database.drop();
  }

  /** Calls the test's function `use` with the rig and returns its result, after it has stopped the agent listeners and dropped the database. */
  async stopAfter<T>(use: (rig: GatewayRig) => Promise<T>): Promise<T> {
    try {
      return await use(this);
    } finally {
      await this.stop();
    }
  }

  async addNode(status: NodeStatus = "enrolling"): Promise<NodeId> {
    const id = NodeId.parse(randomUUID());
    await this.db.insert(nodes).values({
      id,
      hostname: `host-${id.slice(0, 8)}`,
      sku: "g1",
      gpusTotal: 8,
      regionCode: "r1",
      status,
      onboardingMode: "maas",
    });
    return id;
  }

  async issueToken(
    nodeId: NodeId,
    more: { generation?: number; ttlSeconds?: number; boundMacs?: string[]; workflowId?: WorkflowId | null } = {},
  ): Promise<string> {
    const { token } = await this.inTx((tx) =>
      issueEnrollmentToken(tx, {
        nodeId,
        workflowId: null,
        generation: 1,
        maasSystemId: "abc123",
        boundMacs: [],
        ttlSeconds: 600,
        ...more,
      }),
    );
    return token.reveal();
  }

  async enrollRequest(nodeId: NodeId, token: string, key: HostKey): Promise<EnrollRequest> {
    return {
      protocol_version: 1,
      node_id: nodeId,
      token,
      csr_pem: await key.csr(nodeUri(nodeId)),
      hostname: "host",
      boot_id: "boot-1",
      agent_version: "1.0.0",
      macs: ["02:00:00:00:00:01"],
    };
  }

  enroll(body: unknown): Promise<Answer> {
    return this.ask("POST", "/internal/v1/nodes/enroll", { body });
  }

  async enrolled(status: NodeStatus = "active", generation = 1): Promise<Identity> {
    return this.enrollNode(await this.addNode(status), generation);
  }

  async enrollNode(nodeId: NodeId, generation: number, workflowId: WorkflowId | null = null): Promise<Identity> {
    const key = await makeKey();
    const token = await this.issueToken(nodeId, { generation, workflowId });
    const answer = await this.enroll(await this.enrollRequest(nodeId, token, key));
    const { certificate_pem: certPem } = EnrollResponse.parse(answer.json);
    return { nodeId, generation, certPem, keyPem: key.keyPem };
  }

  /** Returns the node's identity with a new certificate of the hub's CA, whose validity ended `hoursAgo` hours ago. */
  async expired(identity: Identity, hoursAgo: number): Promise<Identity> {
    const stored = await this.#secrets.read(SECRET_PATHS.certificateAuthority);
    const keys = await webcrypto.subtle.generateKey(KEY_ALGORITHM, true, ["sign", "verify"]);
    const pkcs8 = x509.PemConverter.decode(stored["private_key_pem"] ?? "")[0] ?? new ArrayBuffer(0);
    const ended = Date.now() - hoursAgo * 3_600_000;
    const certificate = await x509.X509CertificateGenerator.create({
      serialNumber: randomBytes(16).toString("hex"),
      issuer: new x509.X509Certificate(this.ca.caPem).subject,
      notBefore: new Date(ended - 24 * 3_600_000),
      notAfter: new Date(ended),
      signingKey: await webcrypto.subtle.importKey("pkcs8", pkcs8, KEY_ALGORITHM, false, ["sign"]),
      publicKey: keys.publicKey,
      signingAlgorithm: SIGNING_ALGORITHM,
      extensions: [new x509.SubjectAlternativeNameExtension([{ type: "url", value: nodeUri(identity.nodeId) }])],
    });
    await this.db.insert(nodeCertificates).values({
      serial: serialOf(certificate.serialNumber),
      nodeId: identity.nodeId,
      generation: identity.generation,
      publicKeySha256: createHash("sha256").update(new Uint8Array(certificate.publicKey.rawData)).digest("hex"),
      notBefore: certificate.notBefore,
      notAfter: certificate.notAfter,
    });
    const key = await webcrypto.subtle.exportKey("pkcs8", keys.privateKey);
    const keyPem = x509.PemConverter.encode(key, "PRIVATE KEY");
    return { ...identity, certPem: certificate.toString("pem"), keyPem };
  }

  async renew(identity: Identity, key: HostKey, port = this.listener.port): Promise<Identity & { answer: Answer }> {
    const answer = await this.ask("POST", `/internal/v1/nodes/${identity.nodeId}/certificate`, {
      as: identity,
      body: { csr_pem: await key.csr(nodeUri(identity.nodeId)) },
      port,
    });
    const given = EnrollResponse.safeParse(answer.json);
    return { ...identity, certPem: given.data?.certificate_pem ?? "", keyPem: key.keyPem, answer };
  }

  ask(
    method: string,
    path: string,
    more: {
      body?: unknown;
      raw?: string;
      headers?: Record<string, string>;
      as?: Pick<Identity, "certPem" | "keyPem">;
      port?: number;
      agent?: Agent;
    } = {},
  ): Promise<Answer> {
    const text = more.raw ?? (more.body === undefined ? undefined : JSON.stringify(more.body));
    return new Promise((resolve, reject) => {
      const request = httpsRequest(
        {
          method,
          path,
          host: "127.0.0.1",
          port: more.port ?? this.listener.port,
          ca: this.ca.caPem,
          agent: more.agent ?? false,
          ...(more.as === undefined ? {} : { cert: more.as.certPem, key: more.as.keyPem }),
          headers: { ...(text === undefined ? {} : { "content-type": "application/json" }), ...more.headers },
        },
        (response) => {
          const chunks: Buffer[] = [];
          response.on("data", (chunk: Buffer) => chunks.push(chunk));
          response.on("end", () => {
            const text = Buffer.concat(chunks).toString("utf8");
            const type = String(response.headers["content-type"]);
            const json: unknown = type.includes("json") ? JSON.parse(text) : undefined;
            const code = typeof json === "object" && json !== null && "code" in json ? String(json.code) : undefined;
            const retryAfter = response.headers["retry-after"];
            resolve({ status: response.statusCode ?? 0, type, text, json, code, retryAfter });
          });
        },
      );
      request.on("error", reject);
      request.end(text);
    });
  }

  /** Creates a workflow that is due after an hour, or earlier when a hub wakes the workflows that wait for the key `waitOn`. */
  async waitingWorkflow(waitOn: string): Promise<{ isDue(): Promise<boolean> }> {
    const id = WorkflowId.parse(randomUUID());
    const wakeAt = sql`now() + interval '1 hour'`;
    await this.db
      .insert(workflows)
      .values({ id, kind: "test", status: "running", stage: "s", input: {}, requestedBy: "test", waitOn, wakeAt });
    return {
      isDue: async () => {
        const [row] = await this.db
          .select({ due: sql<boolean>`${workflows.wakeAt} <= now()` })
          .from(workflows)
          .where(eq(workflows.id, id));
        return row?.due === true;
      },
    };
  }

  hasSigned(order: SignedOrder): boolean {
    const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x: this.signer.publicKey }, format: "jwk" });
    return verify(null, Buffer.from(orderSigningText(order)), key, Buffer.from(order.signature, "base64url"));
  }

  /**
   * Returns all rows of the tables `WATCHED`, without the columns that each contact of an agent changes. `snapshot` leaves out the times of an
   * agent's last contact, the heartbeat's time to live, and a certificate's first use and text.
   */
  async snapshot(): Promise<unknown> {
    const all: Record<string, unknown> = {};
    for (const table of WATCHED) {
      const { rows } = await this.db.execute<{ rows: unknown }>(
        sql`select coalesce(jsonb_agg(r order by r::text), '[]') as rows from (
          select to_jsonb(t) - 'last_seen_at' - 'last_agent_contact_at' - 'heartbeat_ttl_ms' - 'first_used_at' - 'pem' as r from ${sql.identifier(table)} t) x`,
      );
      all[table] = rows[0]?.rows;
    }
    return all;
  }
}
