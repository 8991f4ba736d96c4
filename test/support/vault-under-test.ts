/**
 * The Vault servers for the tests: a simulated server, and a real server if `VAULT_ADDR` and `VAULT_TOKEN` are set. The token in `VAULT_TOKEN` must
 * have all permissions, because the tests create and remove engines, policies and roles. The tests refuse to run against a real Vault server that
 * already contains data.
 */
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { z } from "zod";
import { startVault } from "../fakes/vault/server.ts";
import type { Policy, SecretIdTerms } from "../fakes/vault/tokens.ts";

export interface VaultUnderTest {
  readonly address: { readonly url: string; readonly namespace: string | null; readonly ca: string | null };
  /**
   * The path at which Vault's secrets engine KV version 2 is mounted. If a test sets `casRequired`, each write to the KV mount must name the version
   * that it replaces (check-and-set).
   */
  readonly mount: string;
  readonly version1: string;
  readonly roleMount: string;
  setPolicy(name: string, policy: Policy): Promise<void>;
  createToken(policies: readonly string[]): Promise<string>;
  revokeToken(token: string): Promise<void>;
  addRole(policies: readonly string[]): Promise<RoleUnderTest>;
  /** Revokes all tokens that Vault has issued at AppRole logins. */
  revokeRoleTokens(): Promise<void>;
  close(): Promise<void>;
}
export interface RoleUnderTest {
  readonly roleId: string;
  newSecretId(terms?: SecretIdTerms): Promise<string>;
  change(terms: { policies?: readonly string[]; defaultPolicy?: boolean }): Promise<void>;
}
interface Wanted {
  readonly casRequired?: boolean;
}

/** Matches the mounts of a fresh development server of Vault and the mounts that the tests create. */
const OWN_MOUNTS = /^(cubbyhole|identity|secret|sys)\/$|^muster-test-/;

export const hubPolicy = (mount: string): Policy => ({
  [`${mount}/data/*`]: ["create", "update", "read"],
  [`${mount}/metadata/*`]: ["delete"],
});

/** The title of the test that reports that the tests with a real Vault are skipped. */
export const SKIPPED = process.env["VAULT_ADDR"] === undefined ? ["SKIPPED: VAULT_ADDR names no real Vault"] : [];
const { VAULT_ADDR, VAULT_TOKEN = "", VAULT_NAMESPACE, VAULT_CACERT } = process.env;
export type StartVault = (wanted?: Wanted) => Promise<VaultUnderTest>;
export const VAULTS: Readonly<Record<string, StartVault>> = {
  "the double of Vault": doubleOfVault,
  ...(VAULT_ADDR === undefined ? {} : { [`a real Vault (${VAULT_ADDR})`]: (wanted) => realVault(VAULT_ADDR, wanted) }),
};

async function doubleOfVault({ casRequired = false }: Wanted = {}): Promise<VaultUnderTest> {
  const server = await startVault();
  const { tokens } = server.vault;
  server.vault.mount("kv").casRequired = casRequired;
  server.vault.mountVersion1("old");
  return {
    address: { url: server.url, namespace: null, ca: null },
    mount: "kv",
    version1: "old",
    roleMount: "approle",
    setPolicy: async (name, policy) => void tokens.policies.set(name, policy),
    createToken: async (policies) => tokens.create({ policies, ttl: 3600 }),
    revokeToken: async (token) => tokens.revoke(token),
    addRole: async (policies) => {
      const role = tokens.addRole({ policies });
      return {
        roleId: role.roleId,
        newSecretId: async (terms) => role.newSecretId(terms),
        change: async (terms) => role.change(terms),
      };
    },
    revokeRoleTokens: async () => tokens.revokeAll(),
    close: () => server.close(),
  };
}

const Mounts = z.object({ data: z.record(z.string(), z.unknown()) });
const TokenMade = z.object({ auth: z.object({ client_token: z.string() }) });
const RoleId = z.object({ data: z.object({ role_id: z.string() }) });
const SecretIdMade = z.object({ data: z.object({ secret_id: z.string() }) });

async function realVault(url: string, { casRequired = false }: Wanted = {}): Promise<VaultUnderTest> {
  const mark = `muster-test-${randomBytes(4).toString("hex")}`;
  const [mount, version1, roleMount] = [`${mark}/kv`, `${mark}-old`, `${mark}-approle`];
  const made: string[] = [];
  const ask = async (method: string, path: string, body?: unknown): Promise<unknown> => {
    const answer = await fetch(`${url}/v1/${path}`, {
      method,
      headers: {
        "X-Vault-Token": VAULT_TOKEN,
        ...(VAULT_NAMESPACE === undefined ? {} : { "X-Vault-Namespace": VAULT_NAMESPACE }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`Vault answered ${method} ${path} with ${answer.status}: ${text}`);
    return text === "" ? null : JSON.parse(text);
  };
  const make = async (path: string, body: unknown): Promise<void> => {
    await ask("POST", path, body);
    made.push(path);
  };
  const others = Object.keys(Mounts.parse(await ask("GET", "sys/mounts")).data).filter(
    (path) => !OWN_MOUNTS.test(path),
  );
  if (others.length > 0)
    throw new Error(`The Vault at ${url} is in use (${others.join()}): these suites need one that holds nothing else`);
  await make(`sys/mounts/${mount}`, { type: "kv", options: { version: "2" } });
  await make(`sys/mounts/${version1}`, { type: "kv", options: { version: "1" } });
  await make(`sys/auth/${roleMount}`, { type: "approle" });
  await ask("POST", `${mount}/config`, { cas_required: casRequired });
  return {
    address: {
      url,
      namespace: VAULT_NAMESPACE ?? null,
      ca: VAULT_CACERT === undefined ? null : readFileSync(VAULT_CACERT, "utf8"),
    },
    mount,
    version1,
    roleMount,
    setPolicy: (name, policy) =>
      make(`sys/policies/acl/${mark}-${name}`, { policy: JSON.stringify({ path: rules(policy) }) }),
    createToken: async (policies) => {
      const terms = { policies: policies.map((name) => `${mark}-${name}`), ttl: "1h" };
      return TokenMade.parse(await ask("POST", "auth/token/create", terms)).auth.client_token;
    },
    revokeToken: async (token) => void (await ask("POST", "auth/token/revoke", { token })),
    addRole: (policies) => addRole(policies, `auth/${roleMount}/role/${randomBytes(4).toString("hex")}`, mark, ask),
    revokeRoleTokens: async () => void (await ask("POST", `sys/leases/revoke-force/auth/${roleMount}/login`)),
    close: async () => {
      for (const path of new Set(made)) await ask("DELETE", path);
    },
  };
}

async function addRole(
  policies: readonly string[],
  path: string,
  mark: string,
  ask: (method: string, path: string, body?: unknown) => Promise<unknown>,
): Promise<RoleUnderTest> {
  const named = (names: readonly string[]) => names.map((name) => `${mark}-${name}`);
  await ask("POST", path, { token_policies: named(policies), token_ttl: "1h" });
  const { role_id: roleId } = RoleId.parse(await ask("GET", `${path}/role-id`)).data;
  return {
    roleId,
    // In a real Vault, the AppRole's settings say how long and for how many logins a secret ID is valid.
    newSecretId: async ({ uses = 0, ttl = 0 } = {}) => {
      await ask("POST", path, { secret_id_num_uses: uses, secret_id_ttl: `${ttl}s` });
      return SecretIdMade.parse(await ask("POST", `${path}/secret-id`, {})).data.secret_id;
    },
    change: async ({ policies: next, defaultPolicy }) =>
      void (await ask("POST", path, {
        ...(next === undefined ? {} : { token_policies: named(next) }),
        ...(defaultPolicy === undefined ? {} : { token_no_default_policy: !defaultPolicy }),
      })),
  };
}

const rules = (policy: Policy): Record<string, { capabilities: readonly string[] }> =>
  Object.fromEntries(Object.entries(policy).map(([path, capabilities]) => [path, { capabilities }]));
