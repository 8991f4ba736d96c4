import { readFile } from "node:fs/promises";
import { z } from "zod";
import { Secret } from "../../shared/secret.ts";
import type { Log } from "../log.ts";
import { SecretError } from "./port.ts";
import type { VaultApi } from "./vault-api.ts";
import { type Lease, type NextStep, nextStep } from "./vault-lease.ts";

/** How the hub proves to Vault who it is. Files are read at each login, so that a new secret needs no restart. */
export type VaultCredentials =
  | { readonly kind: "token"; readonly tokenFile: string }
  | {
      readonly kind: "approle";
      /** Where the auth method is mounted, below `auth/`. */
      readonly mount: string;
      readonly roleId: string;
      readonly secretIdFile: string;
    };

/** Calls `run` once after so long, unless the function that it gives back is called before. */
export type Timer = (ms: number, run: () => void) => () => void;

interface Session {
  readonly token: Secret;
  readonly lease: Lease;
}

const LoggedIn = z.object({
  auth: z.object({ client_token: z.string().min(1), lease_duration: z.number(), renewable: z.boolean() }),
});
const LookedUp = z.object({ data: z.object({ ttl: z.number(), renewable: z.boolean().default(false) }) });
const Renewed = z.object({ auth: z.object({ lease_duration: z.number(), renewable: z.boolean() }) });

const LOOKUP = "auth/token/lookup-self";
const RENEW = "auth/token/renew-self";
const RETRY_LEAST_MS = 1_000;

/** Keeps one token of Vault alive, and gets another when it is gone. */
export class VaultLogin {
  readonly #api: VaultApi;
  readonly #credentials: VaultCredentials;
  readonly #timer: Timer;
  readonly #log: Log;
  #session: Session | null = null;
  /** The login under way: those who need a token at once share it. */
  #pending: Promise<Session> | null = null;
  #cancel: () => void = () => undefined;
  #closed = false;

  constructor(options: { api: VaultApi; credentials: VaultCredentials; timer: Timer; log: Log }) {
    this.#api = options.api;
    this.#credentials = options.credentials;
    this.#timer = options.timer;
    this.#log = options.log;
  }

  async token(): Promise<Secret> {
    return (this.#session ?? (await this.#logIn())).token;
  }

  /** Asked after a 403, which Vault gives for a token that is gone as for a path that its policies forbid. True: another token is worth asking with. */
  async isGone(token: Secret): Promise<boolean> {
    if (this.#session !== null && this.#session.token !== token) return true;
    const answer = await this.#api({ method: "GET", path: LOOKUP, token });
    if (answer.ok) return false;
    if (this.#session?.token === token) this.#forget();
    return true;
  }

  /** The token lives on: another process may start with it, and an AppRole's lapses by itself. */
  close(): void {
    this.#closed = true;
    this.#cancel();
  }

  #forget(): void {
    this.#cancel();
    this.#session = null;
  }

  #logIn(): Promise<Session> {
    this.#pending ??= (
      this.#credentials.kind === "token" ? this.#openToken(this.#credentials) : this.#openRole(this.#credentials)
    )
      .then((session) => {
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

  async #openToken({ tokenFile }: { tokenFile: string }): Promise<Session> {
    const token = await readSecret(tokenFile, "VAULT_TOKEN_FILE");
    const answer = await this.#api({ method: "GET", path: LOOKUP, token });
    if (!answer.ok)
      throw new SecretError(
        "secret_store_login_refused",
        LOOKUP,
        `Vault refuses the token in ${tokenFile} (HTTP status ${answer.status}): it is wrong, has ended or was revoked, or may not look itself up. Write a new one there, with the default policy; no restart is needed`,
      );
    const { ttl, renewable } = understood(LookedUp, answer.body, LOOKUP).data;
    return { token, lease: { seconds: ttl, renewable } };
  }

  async #openRole(role: { mount: string; roleId: string; secretIdFile: string }): Promise<Session> {
    const secretId = await readSecret(role.secretIdFile, "VAULT_SECRET_ID_FILE");
    const path = `auth/${role.mount}/login`;
    const body = { role_id: role.roleId, secret_id: secretId.reveal() };
    const answer = await this.#api({ method: "POST", path, token: null, body });
    if (!answer.ok)
      throw new SecretError(
        "secret_store_login_refused",
        path,
        `Vault refuses the login (HTTP status ${answer.status}): VAULT_ROLE_ID, the secret ID in ${role.secretIdFile}, or where AppRole is mounted is wrong, or the secret ID is used up. Write a new secret ID there; no restart is needed`,
      );
    const { auth } = understood(LoggedIn, answer.body, path);
    const lease = { seconds: auth.lease_duration, renewable: auth.renewable };
    return { token: new Secret(auth.client_token), lease };
  }

  #plan(lease: Lease, granted: Lease): void {
    this.#schedule(nextStep(lease, granted, this.#credentials.kind === "approle", Math.random()), granted);
  }

  #schedule(step: NextStep, granted: Lease): void {
    this.#cancel();
    if (step === null || this.#closed) return;
    this.#cancel = this.#timer(step.afterMs, () => {
      const done = step.how === "renew" ? this.#renew(granted) : this.#logIn();
      done.catch((error: unknown) => {
        this.#log.warn("the lease of the Vault token was not prolonged", { error });
        // The token is good for the rest of its lease; once that has passed, the first 403 asks for another.
        this.#schedule({ ...step, afterMs: Math.max(RETRY_LEAST_MS, step.afterMs / 2) }, granted);
      });
    });
  }

  async #renew(granted: Lease): Promise<void> {
    const session = this.#session;
    if (session === null) return;
    const answer = await this.#api({ method: "POST", path: RENEW, token: session.token });
    if (!answer.ok) {
      this.#log.info("Vault renews the token no more; the next call logs in again", { http_status: answer.status });
      if (this.#session === session) this.#forget();
      return;
    }
    const { auth } = understood(Renewed, answer.body, RENEW);
    const lease = { seconds: auth.lease_duration, renewable: auth.renewable };
    if (this.#session === session) this.#plan(lease, granted);
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

/** Of a file with one secret and, mostly, a line end. */
async function readSecret(file: string, setting: string): Promise<Secret> {
  const text = await readFile(file, "utf8").catch((error: unknown) => {
    const detail = `The file that ${setting} names cannot be read: ${file}. Create it, readable by the hub's user`;
    throw new SecretError("secret_store_misconfigured", setting, detail, error);
  });
  if (text.trim() !== "") return new Secret(text.trim());
  throw new SecretError(
    "secret_store_misconfigured",
    setting,
    `The file that ${setting} names is empty: ${file}. Write the secret into it`,
  );
}
