import { randomBytes, randomUUID } from "node:crypto";
import {
  dataReply,
  forbidden,
  invalid,
  noContent,
  noToken,
  permissionDenied,
  type VaultFault,
  type VaultReply,
} from "./answer.ts";
import type { VaultClock } from "./clock.ts";

export type Capability = "create" | "read" | "update" | "delete" | "list";
/** A policy of Vault: capabilities by path, without `/v1/`. A `*` at a path's end matches every continuation of the path. */
export type Policy = Readonly<Record<string, readonly Capability[]>>;

export interface TokenTerms {
  readonly policies: readonly string[];
  /** The token's time to live in seconds, or 0 for a Vault token that does not expire. */
  readonly ttl: number;
  /** The greatest age, in seconds, that a Vault token can reach by renewals, or 0 for no limit. */
  readonly maxTtl: number;
  readonly renewable: boolean;
  readonly namespace: string;
  /** Without Vault's policy `default`, a token cannot look itself up. */
  readonly defaultPolicy: boolean;
}
const TERMS: TokenTerms = {
  policies: [],
  ttl: 0,
  maxTtl: 0,
  renewable: true,
  namespace: "",
  defaultPolicy: true,
};

interface Token extends TokenTerms {
  readonly id: string;
  readonly accessor: string;
  readonly madeAt: number;
  endsAt: number | null;
}

interface SecretId {
  /** How many more logins the secret ID allows, or null for any number. */
  uses: number | null;
  readonly endsAt: number;
}
/** For how many seconds and how many logins a secret ID is valid. */
export interface SecretIdTerms {
  readonly uses?: number;
  readonly ttl?: number;
}
interface Role {
  readonly roleId: string;
  terms: TokenTerms;
  readonly secretIds: Map<string, SecretId>;
}
export interface RoleHandle {
  readonly roleId: string;
  newSecretId(terms?: SecretIdTerms): string;
  /** Changes the policies and lifetimes of the tokens that Vault issues at later logins. Tokens from previous logins keep their policies. */
  change(terms: Partial<TokenTerms>): void;
}

/** The part of Vault's policy `default` that the tests need. */
const DEFAULT: Policy = {
  "auth/token/lookup-self": ["read"],
  "auth/token/renew-self": ["update"],
  "auth/token/revoke-self": ["update"],
};

/** The authorization of the simulated Vault: policies, tokens with their leases, and AppRoles. */
export class VaultTokens {
  readonly #clock: VaultClock;
  readonly #tokens = new Map<string, Token>();
  readonly #roles: Role[] = [];
  readonly policies = new Map<string, Policy>([["default", DEFAULT]]);
  logins = 0;
  renewals = 0;
  /** Every token that the simulated Vault has ever issued. */
  readonly issued: string[] = [];

  constructor(clock: VaultClock) {
    this.#clock = clock;
  }

  create(terms: Partial<TokenTerms> = {}): string {
    return this.#make({ ...TERMS, ...terms }).id;
  }

  addRole(terms: Partial<TokenTerms> = {}): RoleHandle {
    const role: Role = { roleId: randomUUID(), terms: { ...TERMS, ttl: 3600, ...terms }, secretIds: new Map() };
    this.#roles.push(role);
    return {
      roleId: role.roleId,
      newSecretId: ({ uses, ttl } = {}) => {
        const id = randomUUID();
        const endsAt = ttl === undefined ? Number.POSITIVE_INFINITY : this.#clock.now() + ttl * 1000;
        role.secretIds.set(id, { uses: uses ?? null, endsAt });
        return id;
      },
      change: (changed) => {
        role.terms = { ...role.terms, ...changed };
      },
    };
  }

  get living(): number {
    return this.#tokens.size;
  }
  revoke(id: string): void {
    this.#tokens.delete(id);
  }
  revokeAll(): void {
    this.#tokens.clear();
  }

  /** Throws 403 when a token is unknown or expired, belongs to another namespace, or has no policy for the call. */
  demand(id: string | undefined, namespace: string, path: string, capability: Capability): Token {
    const token = this.#living(id, namespace, noToken());
    if (!this.#grants(token, path).has(capability)) throw forbidden();
    return token;
  }

  /** True if a policy of the token names a path below the mount, because Vault otherwise hides the mount from the token. */
  knowsMount(id: string | undefined, namespace: string, mount: string): boolean {
    const token = this.#living(id, namespace, noToken(500));
    return this.#policiesOf(token).some((policy) => Object.keys(policy).some((path) => path.startsWith(`${mount}/`)));
  }

  lookupSelf(token: Token): VaultReply {
    const { id, accessor, madeAt, endsAt, renewable } = token;
    return dataReply({
      id,
      accessor,
      policies: namesOf(token),
      renewable: endsAt !== null && renewable,
      creation_time: Math.floor(madeAt / 1000),
      creation_ttl: token.ttl,
      expire_time: endsAt === null ? null : new Date(endsAt).toISOString(),
      ttl: this.#left(token),
      type: "service",
      num_uses: 0,
      orphan: true,
    });
  }

  renewSelf(token: Token): VaultReply {
    if (token.endsAt === null || !token.renewable) throw invalid("lease is not renewable");
    this.renewals += 1;
    const wanted = this.#clock.now() + token.ttl * 1000;
    const latest = token.maxTtl === 0 ? wanted : token.madeAt + token.maxTtl * 1000;
    token.endsAt = Math.min(wanted, latest);
    return this.#auth(token);
  }

  login(namespace: string, body: unknown): VaultReply {
    const { role_id: roleId, secret_id: secretId } = (body ?? {}) as Record<string, unknown>;
    if (typeof roleId !== "string" || roleId === "") throw invalid("missing role_id");
    const role = this.#roles.find((one) => one.roleId === roleId && one.terms.namespace === namespace);
    if (role === undefined) throw invalid("invalid role ID");
    if (typeof secretId !== "string" || secretId === "") throw invalid("missing secret_id");
    const known = role.secretIds.get(secretId);
    if (known === undefined || known.endsAt <= this.#clock.now()) throw invalid("invalid secret id");
    if (known.uses !== null) known.uses -= 1;
    if (known.uses === 0) role.secretIds.delete(secretId);
    this.logins += 1;
    return this.#auth(this.#make(role.terms));
  }

  revokeSelf(token: Token): VaultReply {
    this.revoke(token.id);
    return noContent;
  }

  #make(terms: TokenTerms): Token {
    const madeAt = this.#clock.now();
    const id = `hvs.${randomBytes(24).toString("base64url")}`;
    const endsAt = terms.ttl === 0 ? null : madeAt + terms.ttl * 1000;
    const token: Token = { ...terms, id, accessor: randomBytes(12).toString("base64url"), madeAt, endsAt };
    this.#tokens.set(id, token);
    this.issued.push(id);
    return token;
  }

  #living(id: string | undefined, namespace: string, missing: VaultFault): Token {
    if (id === undefined || id === "") throw missing;
    const token = this.#tokens.get(id);
    const lives = token !== undefined && (token.endsAt === null || token.endsAt > this.#clock.now());
    if (!lives || token.namespace !== namespace) throw permissionDenied();
    return token;
  }

  #left(token: Token): number {
    return token.endsAt === null ? 0 : Math.max(0, Math.floor((token.endsAt - this.#clock.now()) / 1000));
  }

  #policiesOf(token: Token): Policy[] {
    return namesOf(token).map((name) => this.policies.get(name) ?? {});
  }

  /**
   * If several rules of a token's policies match a path, Vault applies the rule without `*`. If every matching rule of a policy has a `*`, Vault
   * applies the longest rule.
   */
  #grants(token: Token, path: string): Set<Capability> {
    const rules = this.#policiesOf(token).flatMap((policy) => Object.entries(policy));
    const fitting = rules.filter(([rule]) => (rule.endsWith("*") ? path.startsWith(rule.slice(0, -1)) : rule === path));
    const rank = (rule: string): number => (rule.endsWith("*") ? rule.length : Number.POSITIVE_INFINITY);
    const best = Math.max(...fitting.map(([rule]) => rank(rule)));
    return new Set(fitting.filter(([rule]) => rank(rule) === best).flatMap(([, capabilities]) => capabilities));
  }

  #auth(token: Token): VaultReply {
    return {
      status: 200,
      body: {
        auth: {
          client_token: token.id,
          accessor: token.accessor,
          policies: namesOf(token),
          token_policies: namesOf(token),
          metadata: null,
          lease_duration: this.#left(token),
          renewable: token.endsAt !== null && token.renewable,
          token_type: "service",
          orphan: true,
        },
      },
    };
  }
}

const namesOf = ({ policies, defaultPolicy }: TokenTerms): string[] =>
  [...new Set([...(defaultPolicy ? ["default"] : []), ...policies])].sort();
