import { readFile, stat } from "node:fs/promises";
import { z } from "zod";
import type { Log } from "../../shared/log.ts";
import { Secret } from "../../shared/secret.ts";
import { SecretError } from "./port.ts";
import type { VaultApi } from "./vault-api.ts";
import { FRUITLESS_MS, loginHoldMs } from "./vault-hold.ts";
import { type Lease, type NextStep, nextStep, retryMs } from "./vault-lease.ts";

/** The hub reads the files with its Vault credentials at each login to Vault, so that a new credential needs no restart of the hub. */
export type VaultCredentials =
  | { readonly kind: "token"; readonly tokenFile: string }
  | {
      readonly kind: "approle";
      /** The mount path of Vault's auth method, below `auth/`. */
      readonly mount: string;
      readonly roleId: string;
      readonly secretIdFile: string;
    };

export interface LeaseClock {
  /** Returns the milliseconds since an arbitrary but fixed moment. */
  now(): number;
  /** Calls `run` once after `ms` milliseconds. The function that `timer` returns cancels the planned call of `run`. */
  timer(ms: number, run: () => void): () => void;
}
export const systemClock: LeaseClock = {
  now: () => performance.now(),
  timer: (ms, run) => {
    const timer = setTimeout(run, Math.min(ms, 2 ** 31 - 1)).unref();
    return () => clearTimeout(timer);
  },
};

interface Session {
  readonly token: Secret;
  readonly lease: Lease;
  /** True if the Vault token's policies let the token look itself up; a look-up tells whether the token is still valid. */
  readonly looksItselfUp: boolean;
}

/**
 * The content of a file with a credential for Vault, and the time of the file's last change. If the file of a refused credential has changed, its
 * content may be valid now.
 */
interface Credential {
  readonly secret: Secret;
  readonly writtenAt: number;
}
interface Refusal {
  readonly credential: Credential;
  /** The number of times in a row that Vault has refused the credential. */
  readonly times: number;
  readonly at: number;
  readonly error: SecretError;
}

const LoggedIn = z.object({
  auth: z.object({
    client_token: z.string().min(1),
    lease_duration: z.number(),
    renewable: z.boolean(),
    policies: z.array(z.string()).default([]),
  }),
});
/** Vault's own policy `default` lets a token look itself up. */
const DEFAULT_POLICY = "default";
const LookedUp = z.object({ data: z.object({ ttl: z.number(), renewable: z.boolean().default(false) }) });
const Renewed = z.object({ auth: z.object({ lease_duration: z.number(), renewable: z.boolean() }) });

const LOOKUP = "auth/token/lookup-self";
const RENEW = "auth/token/renew-self";
const REVOKE = "auth/token/revoke-self";

/** Keeps one Vault token valid, and gets a new Vault token if the present token is lost. */
export class VaultLogin {
  readonly #api: VaultApi;
  readonly #credentials: VaultCredentials;
  readonly #clock: LeaseClock;
  readonly #log: Log;
  #session: Session | null = null;
  /** The login to Vault that is under way. All callers that need a Vault token at the same time share one login. */
  #pending: Promise<Session> | null = null;
  /** Vault's last refusal of a login. During the pause after Vault has refused a login, the hub does not send the refused credential again. */
  #refusal: Refusal | null = null;
  #fruitlessAt = Number.NEGATIVE_INFINITY;
  #cancel: () => void = () => undefined;
  #closed = false;

  constructor(options: { api: VaultApi; credentials: VaultCredentials; clock: LeaseClock; log: Log }) {
    this.#api = options.api;
    this.#credentials = options.credentials;
    this.#clock = options.clock;
    this.#log = options.log;
  }

  async token(): Promise<Secret> {
    return (this.#session ?? (await this.#logIn())).token;
  }

  /**
   * The secret store calls `another` when Vault answers 403, either because the token is no longer valid, or because its policies forbid the path. A
   * Vault token has the policies that its role had at the login, so a new token may help. `another` returns a new Vault token for one more call, or
   * null if the path in Vault is forbidden.
   */
  async another(forbidden: Secret): Promise<Secret | null> {
    const session = this.#session;
    if (session !== null && session.token !== forbidden) return session.token;
    if (session !== null && this.#clock.now() - this.#fruitlessAt < FRUITLESS_MS) {
      // If the Vault token has just expired, Vault's answer 403 does not mean that the path is forbidden.
      if (!session.looksItselfUp || (await this.#lives(forbidden))) return null;
      if (this.#session !== null && this.#session !== session) return this.#session.token;
    }
    try {
      const { token } = await this.#logIn();
      if (token.reveal() !== forbidden.reveal()) return token;
    } catch (error) {
      if (!(await this.#lives(forbidden))) {
        if (this.#session?.token === forbidden) this.#forget();
        throw error;
      }
    }
    this.#fruitlessAt = this.#clock.now();
    return null;
  }

  /**
   * The secret store calls `yetAnother` if Vault forbids the call also with the new token that `another` returned. `yetAnother` returns the hub's
   * present Vault token if it has replaced the forbidden token in the meantime, and otherwise null.
   */
  yetAnother(forbidden: Secret): Secret | null {
    if (this.#session !== null && this.#session.token !== forbidden) return this.#session.token;
    this.#fruitlessAt = this.#clock.now();
    return null;
  }

  async #lives(token: Secret): Promise<boolean> {
    return (await this.#api({ method: "GET", path: LOOKUP, token })).ok;
  }

  /**
   * Stops the renewal of the Vault token. The Vault token stays valid after `close`, because another process may use a token from a file, and an
   * AppRole's token expires by itself.
   */
  close(): void {
    this.#closed = true;
    this.#cancel();
  }

  #forget(): void {
    this.#cancel();
    this.#session = null;
  }

  #logIn(): Promise<Session> {
    this.#pending ??= this.#open()
      .then((session) => {
        this.#retire();
        this.#session = session;
        this.#log.info("logged in to Vault", {
          lease_seconds: session.lease.seconds,
          renewable: session.lease.renewable,
        });
        this.#plan(session.lease, session.lease);
        return session;
      })
      .finally(() => {
        this.#pending = null;
      });
    return this.#pending;
  }

  /**
   * Revokes the previous Vault token, because replaced tokens of a role with long leases would accumulate in Vault. A call that still uses the
   * revoked token fails, and the hub repeats the call with the next token.
   */
  #retire(): void {
    if (this.#session === null || this.#credentials.kind === "token") return;
    this.#api({ method: "POST", path: REVOKE, token: this.#session.token }).catch(() => undefined);
  }

  async #open(): Promise<Session> {
    const credentials = this.#credentials;
    const credential =
      credentials.kind === "token"
        ? await readCredential(credentials.tokenFile, "VAULT_TOKEN_FILE")
        : await readCredential(credentials.secretIdFile, "VAULT_SECRET_ID_FILE");
    const before = this.#refusal !== null && isSame(this.#refusal.credential, credential) ? this.#refusal : null;
    if (before !== null && this.#clock.now() - before.at < loginHoldMs(before.times)) throw before.error;
    const answered =
      credentials.kind === "token"
        ? await this.#openToken(credential.secret, credentials)
        : await this.#openRole(credential.secret, credentials);
    if (!(answered instanceof SecretError)) {
      this.#refusal = null;
      return answered;
    }
    this.#refusal = { credential, times: (before?.times ?? 0) + 1, at: this.#clock.now(), error: answered };
    throw answered;
  }

  /** `#openToken` returns an error if Vault refused the token, and throws every other error. */
  async #openToken(token: Secret, { tokenFile }: { tokenFile: string }): Promise<Session | SecretError> {
    const answer = await this.#api({ method: "GET", path: LOOKUP, token });
    if (!answer.ok)
      return new SecretError(
        "secret_store_login_refused",
        LOOKUP,
        `Vault refuses the token in ${tokenFile} (HTTP status ${answer.status}): it is wrong, has expired, was revoked, or may not look itself up. Write a new token with the default policy into that file; no restart is needed. The old token is tried again within 16 minutes`,
      );
    const { ttl, renewable } = understood(LookedUp, answer.body, LOOKUP).data;
    return { token, lease: { seconds: ttl, renewable }, looksItselfUp: true };
  }

  async #openRole(
    secretId: Secret,
    role: { mount: string; roleId: string; secretIdFile: string },
  ): Promise<Session | SecretError> {
    const path = `auth/${role.mount}/login`;
    const body = { role_id: role.roleId, secret_id: secretId.reveal() };
    const answer = await this.#api({ method: "POST", path, token: null, body });
    if (!answer.ok)
      return new SecretError(
        "secret_store_login_refused",
        path,
        `Vault refuses the login (HTTP status ${answer.status}): VAULT_ROLE_ID, the secret ID in ${role.secretIdFile}, or MUSTER_VAULT_APPROLE_MOUNT is wrong, or the secret ID is used up or has expired. Write a new secret ID into that file; no restart is needed. The old secret ID is tried again within 16 minutes`,
      );
    const { auth } = understood(LoggedIn, answer.body, path);
    const lease = { seconds: auth.lease_duration, renewable: auth.renewable };
    const looksItselfUp = auth.policies.includes(DEFAULT_POLICY);
    return { token: new Secret(auth.client_token), lease, looksItselfUp };
  }

  #plan(lease: Lease, granted: Lease): void {
    this.#schedule(nextStep(lease, granted, this.#credentials.kind === "approle", Math.random()), granted);
  }

  #schedule(step: NextStep, granted: Lease): void {
    this.#cancel();
    if (step === null || this.#closed) return;
    this.#cancel = this.#clock.timer(step.afterMs, () => {
      const session = this.#session;
      const done = step.how === "renew" ? this.#renew(granted) : this.#logIn();
      done.catch((error: unknown) => {
        this.#log.warn("the lease of the Vault token could not be renewed", { error });
        // After a failed renewal, the Vault token stays valid for the rest of its lease. After the end of a Vault token's lease, Vault's first answer
        // 403 makes the hub get a new token. If the hub already uses a new Vault token, the hub has already planned the new token's renewal.
        if (session !== null && this.#session === session)
          this.#schedule({ ...step, afterMs: retryMs(granted) }, granted);
      });
    });
  }

  async #renew(granted: Lease): Promise<void> {
    const session = this.#session;
    if (session === null) return;
    const answer = await this.#api({ method: "POST", path: RENEW, token: session.token });
    // If the hub has replaced the renewed token meanwhile, `#renew` ignores Vault's answer about the old token, because the hub has already planned
    // the renewal of the new one.
    if (this.#session !== session) return;
    if (!answer.ok) {
      this.#log.info("Vault no longer renews the token; logging in again", { http_status: answer.status });
      await this.#logIn();
      return;
    }
    const { auth } = understood(Renewed, answer.body, RENEW);
    this.#plan({ seconds: auth.lease_duration, renewable: auth.renewable }, granted);
  }
}

function understood<T>(schema: z.ZodType<T>, body: unknown, path: string): T {
  const parsed = schema.safeParse(body);
  if (parsed.success) return parsed.data;
  throw new SecretError(
    "secret_store_unavailable",
    path,
    "Vault's answer cannot be understood. Check that VAULT_ADDR names a Vault",
  );
}

const isSame = (one: Credential, other: Credential): boolean =>
  one.writtenAt === other.writtenAt && one.secret.reveal() === other.secret.reveal();

/** Reads a credential's file, which contains one secret, usually followed by a line end. */
async function readCredential(file: string, setting: string): Promise<Credential> {
  const [text, { mtimeMs: writtenAt }] = await Promise.all([readFile(file, "utf8"), stat(file)]).catch(
    (error: unknown) => {
      const detail = `The file that ${setting} names cannot be read: ${file}. Create it, readable by the hub's user`;
      throw new SecretError("secret_store_misconfigured", setting, detail, error);
    },
  );
  if (text.trim() !== "") return { secret: new Secret(text.trim()), writtenAt };
  throw new SecretError(
    "secret_store_misconfigured",
    setting,
    `The file that ${setting} names is empty: ${file}. Write the secret into it`,
  );
}
