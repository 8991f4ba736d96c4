import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { KeptHead } from "../../hub/audit/kept-heads.ts";
import type { Console } from "../../hub/console/console.ts";
import type { Database } from "../../hub/db/client.ts";
import { type HubFacts, watchEventLoop } from "../../hub/diagnostics/facts.ts";
import { createKeptLog, type LogRing } from "../../hub/diagnostics/log-ring.ts";
import { diagnosticsOf, type Patience } from "../../hub/diagnostics/take.ts";
import { EventFeed } from "../../hub/events/event-feed.ts";
import { HubAuthority } from "../../hub/gateway/hub-authority.ts";
import { ensureAdminToken, forgetAdminToken, isAdminToken } from "../../hub/http/admin-token.ts";
import { createAdminApp } from "../../hub/http/app.ts";
import type { ProbeMaas, ReadMaasFacts } from "../../hub/http/deps.ts";
import { startAdminServer } from "../../hub/http/server.ts";
import type { TokenRates } from "../../hub/http/token-budgets.ts";
import { openMetrics } from "../../hub/metrics/metrics.ts";
import type { SecretStore } from "../../hub/secrets/port.ts";
import { openSealedFileStore } from "../../hub/secrets/sealed-file.ts";
import { openSignIn, type SignInSettings } from "../../hub/sign-in/open-sign-in.ts";
import { loadConfig } from "../../hub/startup/config.ts";
import { compareRegion } from "../../hub/startup/site-services.ts";
import { workflowsOf } from "../../hub/workflows/registry.ts";
import type { Problem } from "../../shared/api/errors.ts";
import { SiteId } from "../../shared/ids.ts";
import type { Log } from "../../shared/log.ts";
import { createTestDatabase, type TestDatabase } from "./database.ts";
import { noteLogLine } from "./known-secrets.ts";
import { quietLog } from "./log.ts";
import { NO_BMC } from "./no-bmc.ts";
import { viewerToken } from "./viewer-token.ts";

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies that each route's own schema describes
  readonly body: any;
  readonly problem: Problem;
}

/** The answer of the simulated probe of MAAS, which a test may change. */
export interface ApiHarness {
  readonly database: TestDatabase;
  readonly secrets: SecretStore;
  /** The API token of the administrator, as a file in the hub's folder contains it. */
  readonly admin: string;
  readonly adminTokenFile: string;
  readonly viewer: string;
  readonly log: Log;
  readonly logged: LogRing;
  probeAnswer: Awaited<ReturnType<ProbeMaas>>;
  /**
   * How long requests for diagnostics wait for the database. The default is long, so that no test fails because the computer that runs the tests is
   * slow.
   */
  patience: Patience;
  diagnosticsAsked: number;
  /** The heads of the audit chain that the hub has kept in its state folder. */
  auditHeads: KeptHead[];
  ask(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
  page(path: string, headers?: Record<string, string>): Promise<{ status: number; headers: Headers; text: string }>;
  listen(): Promise<string>;
  /**
   * Returns the number of rows in each table that an API request may write. A refused API request must not change the number of rows in any table.
   */
  counts(): Promise<Record<string, number>>;
  close(): Promise<void>;
}

const WRITTEN = [
  "maas_sites",
  "maas_site_profiles",
  "skus",
  "maas_roce_assignments",
  "maas_power_credential_overrides",
  "workflows",
  "node_onboardings",
  "audit_logs",
  "idempotency_keys",
  "tasks",
  "readiness_signals",
  "node_conditions",
  "report_tokens",
  "allocations",
  "approvals",
  "repair_cases",
  "repair_events",
];

/**
 * An SQL condition that excludes audit entries of refusals. The hub writes an audit entry about a refused request in the background, so the entry
 * may appear after the hub's answer.
 */
const NO_REFUSALS = "where outcome = 'done'";

export const PATIENT: Patience = { statement: 60_000, section: 60_000, all: 110_000 };

export const GOOD_PROBE: ApiHarness["probeAnswer"] = {
  maas_version: "3.7.3",
  clock_ahead_seconds: 0,
  username: "admin",
  is_superuser: true,
  rack_controllers: [],
  checks: [{ name: "token", status: "ok", profile: null, message: "fine" }],
};

/** The CA bundle, in PEM format, that the hub gives to hosts. */
const CA_PEM = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";
const HUB = {
  agentUrl: "https://127.0.0.1:1",
  caBundlePem: () => CA_PEM,
  secretStore: () => ({ code: "ok" as const, detail: null, since: new Date() }),
  compareRegion,
  /** Tests of the admin API have no MAAS region, so every machine has a BMC of its own. */
  maasFacts: async (_: SiteId, ids: readonly string[]) => ({
    username: "admin",
    bmcs: new Map(ids.map((id) => [id, `bmc-of-${id}`])),
  }),
};
const FIRST_BOOT = {
  agentUrl: HUB.agentUrl,
  keys: () => ({ caBundlePem: CA_PEM, taskSigningPublicKey: "" }),
  agentPackage: async () => null,
};

const factsOf = ({ pool }: Database, log: LogRing): HubFacts => ({
  hubId: "test",
  version: "test",
  agentUrl: HUB.agentUrl,
  database: "external",
  secrets: "sealed_file",
  stateDir: tmpdir(),
  settings: loadConfig({ DATABASE_URL: "postgres://muster:hunter2@db/muster", VAULT_ROLE_ID: "hunter3" }).inForce,
  secretStore: HUB.secretStore,
  agents: () => 0,
  pool: () => ({ connections: pool.totalCount, idle: pool.idleCount, waiting: pool.waitingCount }),
  eventLoop: watchEventLoop(),
  log,
});

const metricFactsOf = ({ version, agents, pool }: HubFacts) => ({
  version,
  agents,
  pool,
  secretStoreUsable: () => true,
  auditHeadsLost: () => 0,
  certificates: () => ({ hub_ca: null, admin_listener: null }),
});

/** The services that stages of workflows use refuse every call in tests of the admin API, because the API runs no stage. */
export const OUTSIDE = {
  maas: () => Promise.reject(new Error("the API talks to no MAAS")),
  bmc: NO_BMC,
  firstBoot: FIRST_BOOT,
  countersign: () => {
    throw new Error("the API signs nothing");
  },
  checkAnswers: () => Promise.reject(new Error("the API checks no answers")),
};

interface Options {
  readonly open?: (url: string) => Promise<Database>;
  readonly probe?: ProbeMaas;
  readonly maasFacts?: ReadMaasFacts;
  readonly tokenRates?: TokenRates;
  /** The organization of the routes in NICo's form. */
  readonly nicoOrg?: string;
  readonly signIn?: SignInSettings;
  /** The operators' console, which few tests need. */
  readonly console?: Console;
}

/**
 * If given, the option `open` opens the API's database connection, for example through a proxy. By default, the API's probe of a MAAS region returns
 * `probeAnswer` and sends no request.
 */
export async function startApi(options: Options = {}): Promise<ApiHarness> {
  const database = await createTestDatabase();
  const folder = mkdtempSync(join(tmpdir(), "muster-api-"));
  const secrets = await openSealedFileStore({ directory: join(folder, "secrets") });
  const own = await options.open?.(database.url);
  const { db, inTx } = own ?? database.database;
  const { log, ring } = createKeptLog("debug", noteLogLine);
  const facts = factsOf(own ?? database.database, ring);
  const tokenFile = join(folder, "admin-token");
  await ensureAdminToken(database.database.inTx, tokenFile);
  const closers: (() => Promise<void> | undefined)[] = [];
  const harness: ApiHarness = {
    database,
    secrets,
    log,
    logged: ring,
    admin: readFileSync(tokenFile, "utf8").trim(),
    adminTokenFile: tokenFile,
    viewer: await viewerToken(database),
    ...asAtFirst(),
    ask: async (method, path, body, headers = {}) =>
      answerOf(await app.request(path, requestOf(harness.admin, { method, body, headers }))),
    page: (path, headers = {}) => pageOf(app, path, headers),
    listen: async () => {
      const server = await startAdminServer(app, { host: "127.0.0.1", port: 0 });
      closers.push(() => server.close());
      return `http://127.0.0.1:${server.port}`;
    },
    counts: () => countWritten(database),
    close: async () => {
      for (const close of closers) await close();
      await own?.close();
      await database.drop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
  const authority = await HubAuthority.open({ db, secrets, settleMs: 0 });
  const events = new EventFeed(db, quietLog);
  for (const part of [events, facts.eventLoop]) closers.push(async () => part.close());
  const takeDiagnostics = diagnosticsOf(facts, inTx);
  const metrics = openMetrics({ databaseUrl: database.url, log: quietLog, facts: metricFactsOf(facts), freshMs: 0 });
  closers.unshift(() => metrics.close());
  const signIn = await openSignIn(options.signIn ?? { publicUrl: null, secure: false, oidc: null }, log);
  const app = createAdminApp({
    events,
    signIn,
    ...HUB,
    authority: () => authority,
    db,
    inTx,
    secrets,
    workflows: workflowsOf({ db, inTx, log: quietLog, secrets, ...OUTSIDE }),
    ...insteadOf(options),
    probe: options.probe ?? (async () => harness.probeAnswer),
    log,
    metrics,
    takeDiagnostics: () => {
      harness.diagnosticsAsked += 1;
      return takeDiagnostics(harness.patience);
    },
    auditHeads: async () => harness.auditHeads,
    ...byTokenFile(tokenFile),
    status: () => ({ hub_id: "test", version: "test", agents: 0 }),
  });
  return harness;
}

/** The parts of the harness that a test may change. */
const asAtFirst = (): Pick<ApiHarness, "probeAnswer" | "auditHeads" | "patience" | "diagnosticsAsked"> => ({
  probeAnswer: GOOD_PROBE,
  auditHeads: [],
  patience: PATIENT,
  diagnosticsAsked: 0,
});

const insteadOf = ({ tokenRates, nicoOrg, maasFacts, console }: Options) => ({
  tokenRates,
  nicoOrg,
  ...(console === undefined ? {} : { console }),
  ...(maasFacts === undefined ? {} : { maasFacts }),
});

const byTokenFile = (file: string) => ({
  isAdminToken: (token: string) => isAdminToken(file, token),
  forgetAdminToken: () => forgetAdminToken(file),
});

const requestOf = (
  token: string,
  { method, body, headers }: { method: string; body: unknown; headers: Record<string, string> },
): RequestInit => ({
  method,
  headers: {
    authorization: `Bearer ${token}`,
    ...(body === undefined ? {} : { "content-type": "application/json" }),
    ...headers,
  },
  ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
});

async function answerOf(response: Response): ReturnType<ApiHarness["ask"]> {
  const text = await response.text();
  // An answer of another type than JSON, such as CSV, is the body as it is.
  const isText = /^(text[/]|application[/]yaml)/.test(response.headers.get("content-type") ?? "");
  const json = text === "" ? null : isText ? text : JSON.parse(text);
  return { status: response.status, headers: response.headers, body: json, problem: json as Problem };
}

async function pageOf(
  app: ReturnType<typeof createAdminApp>,
  path: string,
  headers: Record<string, string>,
): ReturnType<ApiHarness["page"]> {
  const response = await app.request(path, { headers });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

async function countWritten({ database: { pool } }: TestDatabase): Promise<Record<string, number>> {
  const entries = await Promise.all(
    WRITTEN.map(
      async (table) =>
        [
          table,
          Number(
            (await pool.query(`select count(*) as n from ${table} ${table === "audit_logs" ? NO_REFUSALS : ""}`))
              .rows[0]?.n,
          ),
        ] as const,
    ),
  );
  return Object.fromEntries(entries);
}

export const SITE_BODY = {
  name: "dc1",
  region_code: "r1",
  api_base_url: "http://maas.example:5240/MAAS",
  pxe_iface: "ens19",
  pxe_vlan_vid: 46,
  node_pxe_iface: "eno8303",
};

/** Each created site has a MAAS region with an address of its own, because a MAAS region may belong to one site only. */
export const siteBody = (name: string) => ({
  ...SITE_BODY,
  name,
  api_base_url: `http://${name}.maas.example:5240/MAAS`,
});

export async function startApiWithSite(): Promise<{ api: ApiHarness; siteId: SiteId }> {
  const api = await startApi();
  return { api, siteId: SiteId.parse((await seedApi(api)).siteId) };
}

export interface SeededApi {
  readonly siteId: string;
  readonly profileId: string;
  readonly skuId: string;
}

export async function seedApi(api: ApiHarness, name = "dc1"): Promise<SeededApi> {
  const site = (await api.ask("POST", "/api/v1/admin/maas-sites", siteBody(name))).body;
  const skuId = `sku-${name}`;
  await api.ask("POST", "/api/v1/admin/skus", { id: skuId, gpu_vendor: "amd", gpus_total: 8 });
  return { siteId: site.id, profileId: site.default_profile_id, skuId };
}
