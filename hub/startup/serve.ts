/**
 * The hub starts settings, database, secrets, clients, engine and listeners in this order, and stops them in reverse order. The exit status is 0
 * after SIGTERM or SIGINT, 78 for invalid settings, and 1 for a failed start.
 */
import { randomUUID, X509Certificate } from "node:crypto";
import { join } from "node:path";
import type { SiteId } from "../../shared/ids.ts";
import { type Log, toStderr } from "../../shared/log.ts";
import { VERSION } from "../../shared/version.ts";
import { startAllocationSweep } from "../allocations/sweep.ts";
import { openBmc } from "../bmc/open.ts";
import type { Database } from "../db/client.ts";
import { createKeptLog, type KeptLog, type LogRing } from "../diagnostics/log-ring.ts";
import { AnswerChecker } from "../gpu-memory/answer-checker.ts";
import { ensureAdminToken } from "../http/admin-token.ts";
import { TlsFilesError } from "../http/tls-files.ts";
import type { MaasPort } from "../maas/port.ts";
import { SiteClients } from "../maas/site-clients.ts";
import { maasRequestSeconds, maasRequests } from "../metrics/counted/maas-requests.ts";
import { startBaselineSweep } from "../node/baseline-sweep.ts";
import { startConditionSweep } from "../node/condition-sweep.ts";
import { startAttemptSweep } from "../node/external/attempt-sweep.ts";
import { startOfflineSweep } from "../node/offline-sweep.ts";
import { startOverrideExpiry } from "../node/override-expiry.ts";
import { startProber } from "../node/probes/prober.ts";
import { startApprovalExpiry } from "../people/approvals/expire-approvals.ts";
import { startPowerSweep } from "../power/sweep.ts";
import { offlineBreaker } from "../reconciler/offline-breaker.ts";
import { Reconciler } from "../reconciler/reconcile.ts";
import { startRepairSweep } from "../repair/sweep.ts";
import { openSecrets } from "../secrets/open.ts";
import type { SecretStore } from "../secrets/port.ts";
import { type StoreWatch, startStoreWatch } from "../secrets/store-watch.ts";
import { RolesFileError } from "../sign-in/roles-file.ts";
import { WakeSignal } from "../timing/wake-signal.ts";
import { exportTraces, NO_TRACES, type Traces } from "../traces/export-traces.ts";
import { tracedBmc, tracedSecrets } from "../traces/traced-ports.ts";
import { startWatcher } from "../watcher/watcher.ts";
import { classifyError } from "../workflows/classify-error.ts";
import { startWorkflowRunner } from "../workflows/engine/runner.ts";
import type { Workflow } from "../workflows/engine/workflow.ts";
import { startCredentialWarnings } from "../workflows/onboarding/credential-warnings.ts";
import { startLateSuccess } from "../workflows/onboarding/late-success.ts";
import { workflowsOf } from "../workflows/registry.ts";
import type { WorkflowServices } from "../workflows/services.ts";
import { type Config, ConfigError, defaultAgentUrl, isWrongSetting, loadConfig } from "./config.ts";
import { type HubIdentity, openIdentity } from "./hub-identity.ts";
import { observeChanges } from "./observe-changes.ts";
import { serveHosts } from "./serve-hosts.ts";
import { type Facts, serveOperators } from "./serve-operators.ts";
import { siteClient, siteQuestions } from "./site-services.ts";
import { startAudit } from "./start-audit.ts";
import { startDatabase } from "./start-database.ts";
import { startFleetSamples } from "./start-fleet-samples.ts";
import { startRetention } from "./start-retention.ts";

type Closer = () => Promise<void> | void;

interface Parts {
  readonly config: Config;
  readonly log: Log;
  readonly ring: LogRing;
  readonly hubId: string;
  readonly database: Database;
  readonly databaseUrl: string;
  readonly secrets: SecretStore;
  readonly identity: HubIdentity;
  readonly maas: (siteId: SiteId, signal?: AbortSignal) => Promise<MaasPort>;
  readonly traces: Traces;
}

/** The hub's name in PostgreSQL's view pg_stat_activity. */
const nameOf = (hubId: string): string => `muster-hub ${hubId.slice(0, 8)}`;

/** The callback `fail` ends the hub after an error in a part that starts later. */
async function start(
  config: Config,
  { log, ring }: KeptLog,
  closers: Closer[],
  fail: (error: unknown) => void,
): Promise<void> {
  const hubId = randomUUID();
  const traces = await openTraces(config, hubId, log, closers);
  const store = await startDatabase(config, nameOf(hubId), log, closers, observeChanges(log, traces));
  const [{ db, inTx }, adminTokenFile] = [store.opened, join(config.sharedDir, "admin-token")];
  // The hub checks first that the secret store belongs to its database, before it creates or revokes anything.
  const { secrets, identity, storeWatch } = await openSecretStore(config, log.with({ part: "secrets" }), db, closers);
  await ensureAdminToken(inTx, adminTokenFile);
  const parts: Parts = {
    config,
    log,
    ring,
    hubId,
    database: store.opened,
    databaseUrl: store.url,
    secrets,
    identity,
    traces,
    maas: siteClient(db, secrets, countedClients(log, traces)),
  };
  const agentUrl = agentUrlOf(config);
  const onTaskEnded = startTaskReaders(parts, closers);
  const hosts = await serveHosts({
    ...parts,
    onTaskEnded,
    at: { host: config.agent.host, port: config.agent.port },
    agentUrl,
    agentPackageDir: config.agentPackageDir,
    heartbeatMinTtlMs: config.heartbeatMinTtlMs,
    log: log.with({ part: "gateway" }),
    fail,
  });
  closers.push(() => hosts.close());
  const answers = new AnswerChecker();
  closers.push(() => answers.close());
  const workflows = workflowsOf(onboardServices(parts, hosts.firstBoot, answers));
  startLoops(parts, workflows, closers);
  const audit = await startAudit(parts, closers);
  const operators = await serveOperators({
    at: config.http,
    nicoOrg: config.nicoOrg,
    approvalHours: config.approvalHours,
    agentUrl,
    caBundlePem: () => identity.keys().ca.caPem,
    authority: () => identity.keys(),
    db,
    inTx,
    secrets,
    workflows,
    log,
    ...audit,
    ...siteQuestions(parts.maas),
    adminTokenFile,
    metrics: config.metrics,
    databaseUrl: store.url,
    caEnd: () => (identity.isOpen ? new X509Certificate(identity.keys().ca.issuerPem).validToDate : null),
    signInSettings: config.signIn,
    facts: factsOf(parts, { agentUrl, agents: hosts.sessions, secretStore: () => storeWatch.state() }),
  });
  closers.push(() => operators.close());
  const kinds = { database: store.kind, secrets: config.secrets.kind };
  const started = { agent_url: agentUrl, admin_token_file: adminTokenFile, ...kinds };
  announce(parts, started, adminUrl(config, operators.port));
}

/** Says in the log and on the standard output that the hub has started. */
function announce({ log, hubId }: Parts, started: Readonly<Record<string, string>>, listening: string): void {
  log.info("hub started", { version: VERSION, hub_id: hubId, ...started });
  process.stdout.write(`${JSON.stringify({ listening, ...started, pid: process.pid })}\n`);
}

async function openTraces({ traces: settings }: Config, hubId: string, log: Log, closers: Closer[]): Promise<Traces> {
  if (settings === null) return NO_TRACES;
  const traces = await exportTraces(settings, { version: VERSION, hubId, log: log.with({ part: "traces" }) });
  closers.push(() => traces.close());
  return traces;
}

/** Returns the clients of the sites' MAAS regions, whose requests the hub logs, counts and traces. */
const countedClients = (log: Log, traces: Traces): SiteClients =>
  new SiteClients((siteId, report) => {
    log.debug("maas request", { site_id: siteId, ...report });
    maasRequests.add({ operation: report.operation, answer: report.outcome });
    maasRequestSeconds.observe({ answer: report.outcome }, report.milliseconds / 1000);
    const [failure, endMs] = [report.outcome === "ok" ? null : report.outcome, Date.now()];
    traces.called({ to: "maas", operation: report.operation, failure, startMs: endMs - report.milliseconds, endMs });
  });

/**
 * Starts the periodic work on allocations, repair cases and baselines, which reads the results of agents' tasks. The returned function wakes the
 * periodic work on allocations and baselines after an agent has ended a task.
 */
function startTaskReaders({ log, database: { db, inTx }, identity }: Parts, closers: Closer[]): () => void {
  const [allocationsDue, baselinesDue] = [new WakeSignal(), new WakeSignal()];
  const allocations = startAllocationSweep({
    db,
    inTx,
    due: allocationsDue,
    log: log.with({ part: "allocations" }),
    countersign: (facts) => identity.keys().signer.countersign(facts),
  });
  closers.push(() => allocations.close());
  const repairs = startRepairSweep({ db, inTx, log: log.with({ part: "repairs" }) });
  closers.push(() => repairs.close());
  const baselines = startBaselineSweep({ inTx, due: baselinesDue, log: log.with({ part: "baselines" }) });
  closers.push(() => baselines.close());
  return () => {
    allocationsDue.raise();
    baselinesDue.raise();
  };
}

const adminUrl = ({ http: { host, tls } }: Config, port: number): string =>
  `${tls === null ? "http" : "https"}://${host.includes(":") ? `[${host}]` : host}:${port}`;

const onboardServices = (
  { config, log, database: { db, inTx }, secrets, maas, identity, traces }: Parts,
  firstBoot: WorkflowServices["firstBoot"],
  answers: AnswerChecker,
): WorkflowServices => ({
  db,
  inTx,
  log: log.with({ part: "onboarding" }),
  secrets: tracedSecrets(secrets, traces),
  maas,
  bmc: tracedBmc(openBmc({ caFile: config.bmcCaFile }), traces),
  firstBoot,
  countersign: (facts) => identity.keys().signer.countersign(facts),
  checkAnswers: (check) => answers.check(check),
});

type OthersFacts = Pick<Facts, "agentUrl" | "agents" | "secretStore">;

function factsOf({ config, hubId, ring, database: { pool } }: Parts, others: OthersFacts): Facts {
  return {
    ...others,
    hubId,
    version: VERSION,
    database: config.databaseUrl === null ? "embedded" : "external",
    secrets: config.secrets.kind,
    stateDir: config.stateDir,
    settings: config.inForce,
    pool: () => ({ connections: pool.totalCount, idle: pool.idleCount, waiting: pool.waitingCount }),
    log: ring,
  };
}

async function openSecretStore(
  config: Config,
  log: Log,
  db: Database["db"],
  closers: Closer[],
): Promise<{ secrets: SecretStore; identity: HubIdentity; storeWatch: StoreWatch }> {
  const { secrets, close } = await openSecrets(config.secrets, log);
  closers.push(close);
  const identity = await openIdentity({ db, secrets, log });
  closers.push(() => identity.close());
  const storeWatch = await startStoreWatch(secrets, log);
  closers.push(() => storeWatch.close());
  return { secrets, identity, storeWatch };
}

function agentUrlOf({ agent: { url, port } }: Config): string {
  if (url !== null) return url;
  if (port !== 0) return defaultAgentUrl(port);
  throw new ConfigError(
    "MUSTER_AGENT_URL is needed when MUSTER_AGENT_PORT is 0: hosts get the address before the port is known.",
  );
}

/** Starts the hub's background work: watching sites, finding silent nodes, running workflows. */
function startLoops(parts: Parts, workflows: readonly Workflow[], closers: Closer[]): void {
  const { config, log, hubId, maas } = parts;
  const { db, inTx } = parts.database;
  const reconciler = new Reconciler({ db, inTx, log: log.with({ part: "reconciler" }) });
  const watcher = startWatcher({
    db,
    inTx,
    hubId,
    clientFor: maas,
    log: log.with({ part: "watcher" }),
    pollIntervalMs: config.watchIntervalMs,
    sweepIntervalMs: config.sweepIntervalMs,
    onPolled: (poll) => reconciler.reconcile(poll),
  });
  closers.push(() => watcher.close());
  const sweep = startOfflineSweep({
    inTx,
    log: log.with({ part: "heartbeat" }),
    graceMs: config.offlineGraceMs,
    holdBack: offlineBreaker,
  });
  closers.push(() => sweep.close());
  const power = startPowerSweep({ db, inTx, maas, log: log.with({ part: "power" }) });
  closers.push(() => power.close());
  const conditions = startConditionSweep({
    inTx,
    log: log.with({ part: "readiness" }),
    graceMs: config.offlineGraceMs,
    listens: () => parts.identity.isOpen,
  });
  closers.push(() => conditions.close());
  const prober = startProber({ inTx, log: log.with({ part: "probes" }) });
  closers.push(() => prober.close());
  const attempts = startAttemptSweep({ db, inTx, log: log.with({ part: "external" }) });
  closers.push(() => attempts.close());
  const days = { records: config.retentionDays, history: config.historyDays };
  const retention = startRetention({ db, inTx, log: log.with({ part: "retention" }), days });
  closers.push(() => retention.close());
  const samples = startFleetSamples({ inTx, log: log.with({ part: "samples" }) });
  closers.push(() => samples.close());
  const approvals = startApprovalExpiry({ inTx, log: log.with({ part: "approvals" }) });
  closers.push(() => approvals.close());
  const overrides = startOverrideExpiry({ inTx, log: log.with({ part: "health" }) });
  closers.push(() => overrides.close());
  const credentials = startCredentialWarnings({ inTx, log: log.with({ part: "credentials" }) });
  closers.push(() => credentials.close());
  const late = startLateSuccess({ inTx, workflows, log: log.with({ part: "workflows" }) });
  closers.push(() => late.close());
  const runner = startWorkflowRunner({
    db,
    inTx,
    hubId,
    workflows,
    classifyError,
    log: log.with({ part: "workflows" }),
    databaseUrl: parts.databaseUrl,
    concurrency: config.workflowConcurrency,
    leaseSeconds: config.workflowLeaseSeconds,
  });
  closers.push(() => runner.close());
}

/**
 * Closes all parts of the hub, in the reverse order of their start. If one part of the hub fails to close, `closeAll` still closes the next parts.
 */
async function closeAll(closers: Closer[], log: Log): Promise<void> {
  for (const close of closers.splice(0).reverse()) {
    try {
      await close();
    } catch (error) {
      log.warn("a part of the hub did not close cleanly", { error });
    }
  }
}

const isWrong = (error: unknown): boolean =>
  isWrongSetting(error) || error instanceof TlsFilesError || error instanceof RolesFileError;

/** Runs a hub until a signal ends it, and ends the process. */
export async function serve(): Promise<never> {
  let config: Config;
  try {
    config = loadConfig(process.env);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exit(78);
  }
  const kept = createKeptLog(config.logLevel, toStderr);
  const { log } = kept;
  const closers: Closer[] = [];
  // An operator sends the signal SIGHUP to make a program read its changed files. Without a listener for SIGHUP, the signal would end the hub.
  process.on("SIGHUP", () => log.info("SIGHUP: reading files again"));
  const stopped = new Promise<void>((resolve) => {
    for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => resolve());
  });
  try {
    let fail: (error: unknown) => void = () => undefined;
    const failed = new Promise<never>((_resolve, reject) => {
      fail = reject;
    });
    failed.catch(() => undefined);
    await start(config, kept, closers, fail);
    await Promise.race([stopped, failed]);
  } catch (error) {
    log.error("the hub cannot run", { error });
    process.stderr.write(`The hub cannot run: ${error instanceof Error ? error.message : String(error)}\n`);
    await closeAll(closers, log);
    process.exit(isWrong(error) ? 78 : 1);
  }
  log.info("hub is stopping");
  await closeAll(closers, log);
  log.info("hub stopped");
  process.exit(0);
}
