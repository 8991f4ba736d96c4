import { hostname } from "node:os";
import { join, resolve } from "node:path";
import { z } from "zod";
import { Secret } from "../shared/secret.ts";
import type { Setting } from "./diagnostics/facts.ts";
import { isLoopback } from "./http/loopback.ts";
import type { TlsPaths } from "./http/tls-files.ts";
import { LOG_LEVELS } from "./log.ts";
import type { SecretsSettings } from "./secrets/open.ts";

const port = (fallback: number) => z.coerce.number().int().min(0).max(65_535).default(fallback);
const millis = (fallback: number, least: number) =>
  z.coerce.number().int().min(least).max(86_400_000).default(fallback);

const mount = (fallback: string) =>
  z
    .string()
    .regex(/^[\w.-]+(\/[\w.-]+)*$/, "must be a path without a slash at either end")
    .default(fallback);
/** What is shown to nobody, whoever asks for the settings in force: it may hold a password, or is half of a login. */
const secret = <T extends z.ZodType<string>>(schema: T) => schema.transform((text) => new Secret(text));
const isOrigin = (text: string): boolean => {
  const url = URL.parse(text);
  return url !== null && url.href === `${url.origin}/`;
};

/**
 * Every setting of the hub process. How a site behaves (timeouts, limits, retries) is not here: it is in the site's profiles, in the
 * database. `docs/settings.md` lists these with what they mean.
 */
const Env = z.object({
  /** A PostgreSQL 15+ server; without it the hub starts, or adopts, its embedded one under the state directory. */
  DATABASE_URL: secret(z.url({ protocol: /^postgres(ql)?$/ })).optional(),
  /** Folder of the PostgreSQL programs for the embedded server; by default a system PostgreSQL, else the ones from npm. */
  MUSTER_POSTGRES_BIN: z.string().min(1).optional(),
  /** Existing user that runs the embedded server when the hub is root; by default one of its own, which the hub makes. */
  MUSTER_POSTGRES_USER: z.string().min(1).optional(),
  MUSTER_DATABASE_POOL_SIZE: z.coerce.number().int().min(3).max(200).default(12),
  /** Embedded database; sealed secrets and admin token too unless MUSTER_SHARED_DIR is set. */
  MUSTER_STATE_DIR: z.string().min(1).default(".muster/hub"),
  /** Sealed secrets and admin token, the same folder for all hubs of one database; by default the state folder. */
  MUSTER_SHARED_DIR: z.string().min(1).optional(),
  /** Where secrets lie. Vault is never chosen by VAULT_ADDR alone, which other programs' settings bring along. */
  MUSTER_SECRETS: z.enum(["sealed_file", "vault"]).default("sealed_file"),
  /** Where KV version 2 is mounted, and where AppRole is, below `auth/`. */
  MUSTER_VAULT_MOUNT: mount("kv"),
  MUSTER_VAULT_APPROLE_MOUNT: mount("approle"),
  /** Vault's own names. Secrets come in files, which a child process does not inherit and a new secret needs no restart for. */
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
  /** CA of the BMCs' certificates, in PEM; without it a BMC's certificate is not looked at. */
  MUSTER_BMC_CACERT: z.string().min(1).optional(),
  /** Debian packages of the agent that hosts fetch at first boot; by default `agent-packages` in the shared folder. */
  MUSTER_AGENT_PACKAGE_DIR: z.string().min(1).optional(),
  /** Admin API and page. In clear text on loopback alone, unless a proxy does TLS. */
  MUSTER_HTTP_HOST: z.string().min(1).default("127.0.0.1"),
  MUSTER_HTTP_PORT: port(8480),
  /** Certificate and key of that listener, in PEM; read again when they change. */
  MUSTER_HTTP_TLS_CERT: z.string().min(1).optional(),
  MUSTER_HTTP_TLS_KEY: z.string().min(1).optional(),
  /** Whoever reaches the listener comes through a proxy that does TLS, so clear text off loopback is meant. */
  MUSTER_HTTP_TLS_BY_PROXY: z.enum(["true", "false"]).default("false"),
  /** Listener for agents: TLS with the hub's own CA, client certificates after enrollment. */
  MUSTER_AGENT_HOST: z.string().min(1).default("0.0.0.0"),
  MUSTER_AGENT_PORT: port(8481),
  /** How hosts reach that listener. Its host name is put into the hub's server certificate. */
  MUSTER_AGENT_URL: z
    .url({ protocol: /^https$/ })
    .refine(
      isOrigin,
      "must be https://HOST:PORT and nothing more: what hosts ask for has paths that begin at the listener's root",
    )
    .optional(),
  MUSTER_LOG_LEVEL: z.enum(LOG_LEVELS).default("info"),
  MUSTER_WATCH_INTERVAL_MS: millis(5_000, 50),
  MUSTER_SWEEP_INTERVAL_MS: millis(3_600_000, 1_000),
  MUSTER_WORKFLOW_CONCURRENCY: z.coerce.number().int().min(1).max(1000).default(32),
  MUSTER_WORKFLOW_LEASE_SECONDS: z.coerce.number().int().min(2).max(300).default(3),
  /** Shortest heartbeat time to live that an agent is told; it grows with the fleet. */
  MUSTER_HEARTBEAT_MIN_TTL_MS: millis(10_000, 500),
  /** After a hub start nobody is offline before this has passed (decision F2). */
  MUSTER_OFFLINE_GRACE_MS: millis(300_000, 1_000),
  /** Days that finished tasks, old certificates, tokens and readiness signals are kept. */
  MUSTER_RETENTION_DAYS: z.coerce.number().int().min(1).max(3650).default(90),
  MUSTER_HISTORY_DAYS: z.coerce.number().int().min(30).max(36_500).default(1_095),
});

export interface Config {
  readonly secrets: SecretsSettings;
  readonly databaseUrl: Secret | null;
  readonly embedded: { readonly binDir: string | null; readonly runAs: string | null };
  readonly databasePoolSize: number;
  readonly stateDir: string;
  readonly sharedDir: string;
  /** `tls`: null where it speaks clear text. */
  readonly http: { readonly host: string; readonly port: number; readonly tls: TlsPaths | null };
  readonly agent: { readonly host: string; readonly port: number; readonly url: string | null };
  readonly agentPackageDir: string;
  readonly bmcCaFile: string | null;
  readonly logLevel: (typeof LOG_LEVELS)[number];
  readonly watchIntervalMs: number;
  readonly sweepIntervalMs: number;
  readonly workflowConcurrency: number;
  readonly workflowLeaseSeconds: number;
  readonly heartbeatMinTtlMs: number;
  readonly offlineGraceMs: number;
  readonly retentionDays: number;
  readonly historyDays: number;
  /** Each of them by its own name, to be shown. */
  readonly inForce: readonly Setting[];
}

/** Names every fault at once, and never a value: a value may be a password. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
}

export function loadConfig(env: Readonly<Record<string, string | undefined>>): Config {
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
    http: { host: e.MUSTER_HTTP_HOST, port: e.MUSTER_HTTP_PORT, tls: adminTls(e) },
    agent: { host: e.MUSTER_AGENT_HOST, port: e.MUSTER_AGENT_PORT, url: e.MUSTER_AGENT_URL ?? null },
    logLevel: e.MUSTER_LOG_LEVEL,
    watchIntervalMs: e.MUSTER_WATCH_INTERVAL_MS,
    sweepIntervalMs: e.MUSTER_SWEEP_INTERVAL_MS,
    workflowConcurrency: e.MUSTER_WORKFLOW_CONCURRENCY,
    workflowLeaseSeconds: e.MUSTER_WORKFLOW_LEASE_SECONDS,
    heartbeatMinTtlMs: e.MUSTER_HEARTBEAT_MIN_TTL_MS,
    offlineGraceMs: e.MUSTER_OFFLINE_GRACE_MS,
    retentionDays: e.MUSTER_RETENTION_DAYS,
    historyDays: e.MUSTER_HISTORY_DAYS,
    inForce: settingsOf({ ...e, ...folders, MUSTER_STATE_DIR: resolve(e.MUSTER_STATE_DIR) }, given),
  };
}

/** Nothing of a secret but whether it is there. */
const settingsOf = (values: z.output<typeof Env>, given: Readonly<Record<string, unknown>>): Setting[] =>
  Object.keys(Env.shape).map((name) => {
    const value = values[name as keyof typeof values] ?? null;
    return { name, given: name in given, value: value instanceof Secret ? "set" : value };
  });

const refuse = (fault: string): ConfigError =>
  new ConfigError(`The hub's settings are not valid. ${fault} See docs/settings.md.`);

/** The admin token, MAAS tokens and BMC logins travel there: never in clear text by accident. */
function adminTls(e: z.output<typeof Env>): TlsPaths | null {
  const { MUSTER_HTTP_TLS_CERT: certFile, MUSTER_HTTP_TLS_KEY: keyFile } = e;
  if (certFile !== undefined && keyFile !== undefined) return { certFile, keyFile };
  if (certFile !== undefined || keyFile !== undefined)
    throw refuse("MUSTER_HTTP_TLS_CERT and MUSTER_HTTP_TLS_KEY are needed together.");
  if (isLoopback(e.MUSTER_HTTP_HOST) || e.MUSTER_HTTP_TLS_BY_PROXY === "true") return null;
  throw refuse(
    "MUSTER_HTTP_HOST is not on loopback, and the API and the page would be served there in clear text. Set MUSTER_HTTP_TLS_CERT and MUSTER_HTTP_TLS_KEY; or, where nobody reaches that address but a proxy that does TLS, MUSTER_HTTP_TLS_BY_PROXY=true.",
  );
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

/** The URL that hosts are given when none is set: this machine's own name and the port that was bound. */
export const defaultAgentUrl = (boundPort: number): string => `https://${hostname()}:${boundPort}`;
