import type { BlockList } from "node:net";
import { hostname } from "node:os";
import { join, resolve } from "node:path";
import { z } from "zod";
import { LOG_LEVELS } from "../../shared/log.ts";
import { nearest } from "../../shared/nearest-name.ts";
import { Secret } from "../../shared/secret.ts";
import { syslogTarget } from "../audit/syslog-sink.ts";
import { databaseUrlFault } from "../db/servers.ts";
import type { Setting } from "../diagnostics/facts.ts";
import { isLoopback } from "../http/loopback.ts";
import { addressSet } from "../http/source-address.ts";
import type { TlsPaths } from "../http/tls-files.ts";
import type { SecretsSettings } from "../secrets/open.ts";
import { SecretError } from "../secrets/port.ts";
import type { SignInSettings } from "../sign-in/open-sign-in.ts";
import type { TraceSettings } from "../traces/export-traces.ts";
import { signInEnv, signInSettings } from "./sign-in-settings.ts";
import { traceEnv, traceSettings } from "./trace-settings.ts";

const port = (fallback: number) => z.coerce.number().int().min(0).max(65_535).default(fallback);
const millis = (fallback: number, least: number) =>
  z.coerce.number().int().min(least).max(86_400_000).default(fallback);

const mount = (fallback: string) =>
  z
    .string()
    .regex(/^[\w.-]+(\/[\w.-]+)*$/, "must be a path without a slash at either end")
    .default(fallback);
/** Makes a setting whose value the hub never shows, because the value may contain a password or be a part of a login. */
const secret = <T extends z.ZodType<string>>(schema: T) => schema.transform((text) => new Secret(text));
const isOrigin = (text: string): boolean => {
  const url = URL.parse(text);
  return url !== null && url.href === `${url.origin}/`;
};

/** The behaviour of a site (timeouts, limits, retries) is in the site's profiles, in the database. `docs/settings.md` explains each setting. */
const Env = z.object({
  /**
   * The URL of a server with PostgreSQL 15 or later, or of several servers, of which the hub uses the one that takes writes. Without DATABASE_URL the
   * hub starts its embedded PostgreSQL server under the state directory, or uses the embedded server that already runs.
   */
  DATABASE_URL: secret(
    z.string().superRefine((url, context) => {
      const message = databaseUrlFault(url);
      if (message !== null) context.addIssue({ code: "custom", message });
    }),
  ).optional(),
  /**
   * The folder of the PostgreSQL programs for the embedded server. Without MUSTER_POSTGRES_BIN the hub uses the system's PostgreSQL, or the
   * PostgreSQL from npm if the system has none.
   */
  MUSTER_POSTGRES_BIN: z.string().min(1).optional(),
  /**
   * An existing user that runs the embedded server if the hub runs as root. Without MUSTER_POSTGRES_USER the hub creates a user that runs the
   * embedded server.
   */
  MUSTER_POSTGRES_USER: z.string().min(1).optional(),
  MUSTER_DATABASE_POOL_SIZE: z.coerce.number().int().min(3).max(200).default(12),
  /**
   * The state folder, which holds the embedded database. The state folder also holds the sealed secrets and the admin token, unless MUSTER_SHARED_DIR
   * is set.
   */
  MUSTER_STATE_DIR: z.string().min(1).default(".muster/hub"),
  /**
   * The folder of the sealed secrets and the admin token. All hubs of one database share the folder MUSTER_SHARED_DIR; by default it is the state
   * folder.
   */
  MUSTER_SHARED_DIR: z.string().min(1).optional(),
  /**
   * The kind of the secret store: sealed files or Vault. The setting VAULT_ADDR alone never selects Vault, because other programs also set
   * VAULT_ADDR.
   */
  MUSTER_SECRETS: z.enum(["sealed_file", "vault"]).default("sealed_file"),
  /** Two paths in Vault: the mount path of KV version 2, and the mount path of AppRole below `auth/`. */
  MUSTER_VAULT_MOUNT: mount("kv"),
  MUSTER_VAULT_APPROLE_MOUNT: mount("approle"),
  /**
   * The VAULT settings have the names that Vault's own programs use. The hub reads its credentials for Vault from files, because child processes do
   * not inherit files, and a new credential in a file needs no restart.
   */
  VAULT_ADDR: z
    .url({ protocol: /^https?$/ })
    .refine((text) => isOrigin(text), "must be scheme, host and port alone")
    .optional(),
  VAULT_NAMESPACE: z.string().min(1).optional(),
  VAULT_CACERT: z.string().min(1).optional(),
  VAULT_CLIENT_TIMEOUT: z.coerce.number().int().min(1).max(300).default(10),
  VAULT_TOKEN_FILE: z.string().min(1).optional(),
  VAULT_ROLE_ID: secret(z.string().min(1)).optional(),
  VAULT_SECRET_ID_FILE: z.string().min(1).optional(),
  /** The CA of the BMCs' certificates, in PEM. Without MUSTER_BMC_CACERT the hub accepts any certificate of a BMC. */
  MUSTER_BMC_CACERT: z.string().min(1).optional(),
  /**
   * The folder with the agent's Debian packages that hosts fetch at their first boot. The default of MUSTER_AGENT_PACKAGE_DIR is the folder
   * `agent-packages` in the shared folder.
   */
  MUSTER_AGENT_PACKAGE_DIR: z.string().min(1).optional(),
  /**
   * The address at which the hub serves the admin API and the web page. Without TLS the admin listener must have a loopback address, unless a proxy
   * does TLS.
   */
  MUSTER_HTTP_HOST: z.string().min(1).default("127.0.0.1"),
  MUSTER_HTTP_PORT: port(8480),
  /**
   * The PEM files with the certificate and the private key of the admin listener. When the certificate file or the key file of the admin listener
   * changes, the hub reads both files again.
   */
  MUSTER_HTTP_TLS_CERT: z.string().min(1).optional(),
  MUSTER_HTTP_TLS_KEY: z.string().min(1).optional(),
  /**
   * The value `true` of MUSTER_HTTP_TLS_BY_PROXY says that only a proxy that does TLS can reach the admin listener. If only a proxy that does TLS
   * reaches the admin listener, the listener may use clear text on an address other than loopback.
   */
  MUSTER_HTTP_TLS_BY_PROXY: z.enum(["true", "false"]).default("false"),
  ...signInEnv,
  /** The proxies in front of the admin listener, as addresses and networks with commas between them. */
  MUSTER_HTTP_PROXIES: z
    .string()
    .refine((text) => addressSet(text) !== null, "must be addresses or networks such as 10.0.0.7,10.1.0.0/16")
    .optional(),
  /** The address of the listener for agents. The agent listener uses TLS with the hub's own CA, and client certificates after enrollment. */
  MUSTER_AGENT_HOST: z.string().min(1).default("0.0.0.0"),
  MUSTER_AGENT_PORT: port(8481),
  /** The URL at which hosts reach the agent listener. The host name in MUSTER_AGENT_URL becomes part of the hub's server certificate for agents. */
  MUSTER_AGENT_URL: z
    .url({ protocol: /^https$/ })
    .refine(
      isOrigin,
      "must be only https://HOST:PORT, because the hosts' requests have paths that begin at the listener's root",
    )
    .optional(),
  /**
   * A port for the metrics alone. Without MUSTER_METRICS_PORT, only the admin listener serves the metrics, to clients with a token that may read. A
   * metrics listener on an address other than loopback needs a token file, because the metrics tell strangers how large the fleet is and what fails
   * in it.
   */
  MUSTER_METRICS_PORT: z.coerce.number().int().min(0).max(65_535).optional(),
  MUSTER_METRICS_HOST: z.string().min(1).default("127.0.0.1"),
  MUSTER_METRICS_TOKEN_FILE: z.string().min(1).optional(),
  ...traceEnv,
  MUSTER_LOG_LEVEL: z.enum(LOG_LEVELS).default("info"),
  MUSTER_WATCH_INTERVAL_MS: millis(5_000, 50),
  MUSTER_SWEEP_INTERVAL_MS: millis(3_600_000, 1_000),
  MUSTER_WORKFLOW_CONCURRENCY: z.coerce.number().int().min(1).max(1000).default(32),
  MUSTER_WORKFLOW_LEASE_SECONDS: z.coerce.number().int().min(2).max(300).default(3),
  /** The shortest heartbeat interval that the hub tells an agent. The heartbeat interval grows with the number of agents. */
  MUSTER_HEARTBEAT_MIN_TTL_MS: millis(10_000, 500),
  /** The time after a hub's start during which no node becomes offline (decision F2). */
  MUSTER_OFFLINE_GRACE_MS: millis(300_000, 1_000),
  /** The file to which the hub appends each audit entry as a JSON line. */
  MUSTER_AUDIT_FILE: z.string().min(1).optional(),
  /** The receiver of syslog to which the hub sends each audit entry. */
  MUSTER_AUDIT_SYSLOG: z
    .string()
    .refine(
      (text) => syslogTarget(text) !== null,
      "must be unix:///PATH of a stream socket, tcp://HOST:PORT or udp://HOST:PORT",
    )
    .optional(),
  /** The number of days for which the hub keeps finished tasks, old certificates, old tokens and readiness signals. */
  MUSTER_RETENTION_DAYS: z.coerce.number().int().min(1).max(3650).default(90),
  MUSTER_HISTORY_DAYS: z.coerce.number().int().min(30).max(36_500).default(1_095),
  /**
   * The organization in the paths of the API routes in the form of NVIDIA NICo's API. Without MUSTER_NICO_ORG the hub serves no routes in the form of
   * NVIDIA NICo's API.
   */
  MUSTER_NICO_ORG: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/)
    .optional(),
  /** The number of hours after which a second person's approval expires, counted from the request for the approval. */
  MUSTER_APPROVAL_HOURS: z.coerce.number().int().min(1).max(720).default(24),
});

export interface Config {
  readonly secrets: SecretsSettings;
  readonly databaseUrl: Secret | null;
  readonly embedded: { readonly binDir: string | null; readonly runAs: string | null };
  readonly databasePoolSize: number;
  readonly stateDir: string;
  readonly sharedDir: string;
  /** The address of the admin listener. The field `http.tls` is null if the admin listener uses clear text. */
  readonly http: {
    readonly host: string;
    readonly port: number;
    readonly tls: TlsPaths | null;
    readonly proxies: BlockList | null;
  };
  readonly signIn: SignInSettings;
  readonly agent: { readonly host: string; readonly port: number; readonly url: string | null };
  readonly metrics: { readonly host: string; readonly port: number | null; readonly tokenFile: string | null };
  /** The collector of traces, or null. */
  readonly traces: TraceSettings | null;
  readonly agentPackageDir: string;
  readonly bmcCaFile: string | null;
  readonly logLevel: (typeof LOG_LEVELS)[number];
  readonly watchIntervalMs: number;
  readonly sweepIntervalMs: number;
  readonly workflowConcurrency: number;
  readonly workflowLeaseSeconds: number;
  readonly heartbeatMinTtlMs: number;
  readonly offlineGraceMs: number;
  /** The places outside the database to which the hub exports audit entries. */
  readonly auditExport: { readonly file: string | null; readonly syslog: string | null };
  readonly retentionDays: number;
  readonly historyDays: number;
  readonly nicoOrg: string | undefined;
  readonly approvalHours: number;
  /** All settings of the hub by name, for display. */
  readonly inForce: readonly Setting[];
}

/**
 * The error that names all invalid settings of the hub at once. The message of a ConfigError never contains a setting's value, because the value may
 * be a password.
 */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
}

/** True for an error that only a change of the settings can mend, which ends a hub and its commands with the status 78. */
export const isWrongSetting = (error: unknown): boolean =>
  error instanceof ConfigError || (error instanceof SecretError && error.isRefusal);

/**
 * The hub accepts the MUSTER settings of the command line, of the agent and of the tests in its own environment, and does not report them as
 * mistyped.
 */
const OF_OTHERS = /^MUSTER_(URL|TOKEN|TOKEN_FILE|CA_FILE|ROOT|TEST_.*)$/;

/**
 * Refuses unknown MUSTER settings: a hub that ignored a mistyped name would, for example, keep its secrets in files although the operator named
 * Vault.
 */
function refuseUnknown(env: Readonly<Record<string, string | undefined>>): void {
  const unknown = Object.keys(env).filter(
    (name) => name.startsWith("MUSTER_") && !(name in Env.shape) && !OF_OTHERS.test(name),
  );
  if (unknown.length === 0) return;
  const faults = unknown.sort().map((name) => {
    const near = nearest(name, Object.keys(Env.shape));
    return `There is no setting ${name}.${near === null ? "" : ` Did you mean ${near}?`}`;
  });
  throw refuse(faults.join(" "));
}

export function loadConfig(env: Readonly<Record<string, string | undefined>>): Config {
  refuseUnknown(env);
  const given = Object.fromEntries(Object.entries(env).filter(([key, value]) => key in Env.shape && value !== ""));
  const parsed = Env.safeParse(given);
  if (!parsed.success) {
    const faults = parsed.error.issues.map((issue) => `${issue.path.join(".")}: ${issue.message}`);
    throw new ConfigError(`The hub's settings are not valid. ${faults.join("; ")}. See docs/settings.md.`);
  }
  const e = parsed.data;
  const sharedDir = resolve(e.MUSTER_SHARED_DIR ?? e.MUSTER_STATE_DIR);
  const agentPackageDir = resolve(e.MUSTER_AGENT_PACKAGE_DIR ?? join(sharedDir, "agent-packages"));
  const folders = { MUSTER_SHARED_DIR: sharedDir, MUSTER_AGENT_PACKAGE_DIR: agentPackageDir };
  return {
    secrets:
      e.MUSTER_SECRETS === "vault" ? vaultConfig(e) : { kind: "sealed_file", directory: join(sharedDir, "secrets") },
    databaseUrl: e.DATABASE_URL ?? null,
    embedded: { binDir: e.MUSTER_POSTGRES_BIN ?? null, runAs: e.MUSTER_POSTGRES_USER ?? null },
    databasePoolSize: e.MUSTER_DATABASE_POOL_SIZE,
    stateDir: resolve(e.MUSTER_STATE_DIR),
    sharedDir,
    agentPackageDir,
    bmcCaFile: e.MUSTER_BMC_CACERT ?? null,
    http: {
      host: e.MUSTER_HTTP_HOST,
      port: e.MUSTER_HTTP_PORT,
      tls: adminTls(e),
      proxies: addressSet(e.MUSTER_HTTP_PROXIES ?? ""),
    },
    metrics: metricsListener(e),
    traces: tracesOf(e),
    signIn: signInConfig(e),
    agent: { host: e.MUSTER_AGENT_HOST, port: e.MUSTER_AGENT_PORT, url: e.MUSTER_AGENT_URL ?? null },
    logLevel: e.MUSTER_LOG_LEVEL,
    watchIntervalMs: e.MUSTER_WATCH_INTERVAL_MS,
    sweepIntervalMs: e.MUSTER_SWEEP_INTERVAL_MS,
    workflowConcurrency: e.MUSTER_WORKFLOW_CONCURRENCY,
    workflowLeaseSeconds: e.MUSTER_WORKFLOW_LEASE_SECONDS,
    heartbeatMinTtlMs: e.MUSTER_HEARTBEAT_MIN_TTL_MS,
    offlineGraceMs: e.MUSTER_OFFLINE_GRACE_MS,
    auditExport: {
      file: e.MUSTER_AUDIT_FILE === undefined ? null : resolve(e.MUSTER_AUDIT_FILE),
      syslog: e.MUSTER_AUDIT_SYSLOG ?? null,
    },
    retentionDays: e.MUSTER_RETENTION_DAYS,
    historyDays: e.MUSTER_HISTORY_DAYS,
    nicoOrg: e.MUSTER_NICO_ORG,
    approvalHours: e.MUSTER_APPROVAL_HOURS,
    inForce: settingsOf({ ...e, ...folders, MUSTER_STATE_DIR: resolve(e.MUSTER_STATE_DIR) }, given),
  };
}

/** The display of a secret setting shows only whether the setting has a value. */
const settingsOf = (values: z.output<typeof Env>, given: Readonly<Record<string, unknown>>): Setting[] =>
  Object.keys(Env.shape).map((name) => {
    const value = values[name as keyof typeof values] ?? null;
    return { name, given: name in given, value: value instanceof Secret ? "set" : value };
  });

const refuse = (fault: string): ConfigError =>
  new ConfigError(`The hub's settings are not valid. ${fault} See docs/settings.md.`);

/** The admin token, MAAS tokens and BMC logins pass through the admin listener, so it must never use clear text by accident. */
function adminTls(e: z.output<typeof Env>): TlsPaths | null {
  const { MUSTER_HTTP_TLS_CERT: certFile, MUSTER_HTTP_TLS_KEY: keyFile } = e;
  if (certFile !== undefined && keyFile !== undefined) return { certFile, keyFile };
  if (certFile !== undefined || keyFile !== undefined)
    throw refuse("MUSTER_HTTP_TLS_CERT and MUSTER_HTTP_TLS_KEY are needed together.");
  if (isLoopback(e.MUSTER_HTTP_HOST) || e.MUSTER_HTTP_TLS_BY_PROXY === "true") return null;
  throw refuse(
    "MUSTER_HTTP_HOST is not on loopback, so the API and the page would be served in clear text. Set MUSTER_HTTP_TLS_CERT and MUSTER_HTTP_TLS_KEY. If only a proxy that does TLS can reach that address, set MUSTER_HTTP_TLS_BY_PROXY=true.",
  );
}

function metricsListener(e: z.output<typeof Env>): Config["metrics"] {
  const { MUSTER_METRICS_HOST: host, MUSTER_METRICS_PORT: port, MUSTER_METRICS_TOKEN_FILE: tokenFile } = e;
  if (port !== undefined && tokenFile === undefined && !isLoopback(host))
    throw refuse(
      "MUSTER_METRICS_HOST is not on loopback, so strangers could read the metrics. Set MUSTER_METRICS_TOKEN_FILE to a file with a token of at least 16 characters.",
    );
  return { host, port: port ?? null, tokenFile: tokenFile ?? null };
}

function signInConfig(e: z.output<typeof Env>): SignInSettings {
  const byTls = e.MUSTER_HTTP_TLS_CERT !== undefined || e.MUSTER_HTTP_TLS_BY_PROXY === "true";
  const settings = signInSettings(e, byTls);
  if ("fault" in settings) throw refuse(settings.fault);
  return settings;
}

function tracesOf(e: z.output<typeof Env>): TraceSettings | null {
  const settings = traceSettings(e);
  if (settings !== null && "fault" in settings) throw refuse(settings.fault);
  return settings;
}

function vaultConfig(e: z.output<typeof Env>): SecretsSettings {
  if (e.VAULT_ADDR === undefined) throw refuse("A secret store in Vault needs VAULT_ADDR.");
  const { VAULT_TOKEN_FILE: tokenFile, VAULT_SECRET_ID_FILE: secretIdFile } = e;
  const roleId = e.VAULT_ROLE_ID?.reveal();
  const byRole = roleId !== undefined || secretIdFile !== undefined;
  if ((tokenFile !== undefined) === byRole)
    throw refuse("A secret store in Vault needs either VAULT_TOKEN_FILE or VAULT_ROLE_ID with VAULT_SECRET_ID_FILE.");
  if (byRole && (roleId === undefined || secretIdFile === undefined))
    throw refuse("VAULT_ROLE_ID and VAULT_SECRET_ID_FILE are needed together.");
  return {
    kind: "vault",
    url: new URL(e.VAULT_ADDR).origin,
    namespace: e.VAULT_NAMESPACE ?? null,
    caFile: e.VAULT_CACERT ?? null,
    deadlineMs: e.VAULT_CLIENT_TIMEOUT * 1000,
    mount: e.MUSTER_VAULT_MOUNT,
    credentials:
      tokenFile === undefined
        ? {
            kind: "approle",
            mount: e.MUSTER_VAULT_APPROLE_MOUNT,
            roleId: roleId ?? "",
            secretIdFile: secretIdFile ?? "",
          }
        : { kind: "token", tokenFile },
  };
}

/**
 * Returns the URL at which hosts reach the hub without a setting MUSTER_AGENT_URL: the host name of the hub's machine, and the agent listener's port.
 */
export const defaultAgentUrl = (boundPort: number): string => `https://${hostname()}:${boundPort}`;
