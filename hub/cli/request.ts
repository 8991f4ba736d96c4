import { readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import type { Invocation } from "./arguments.ts";
import { type InForce, inForce } from "./contexts/in-force.ts";
import { credentialsFile, isFresh, readLogin, withLock, writeLogin } from "./credentials.ts";
import { Away, Refused, UsageError } from "./errors.ts";
import type { ProviderLogin } from "./login-forms.ts";
import { problemText } from "./output.ts";
import { defaultToken, isLoopback, notHere } from "./token.ts";

/** The deadline of an API request whose answer has an end; a request for an event stream has no deadline. */
export const DEADLINE_MS = 60_000;

export interface Target {
  readonly url: string;
  readonly token: string | null;
  /** The login by the hub's provider, whose access token the command renews when the token has expired. */
  readonly login: ProviderLogin | null;
  /** Says where the command looked for a token, if it has none. */
  readonly noToken: string | null;
  /** The file with the logins of this user. */
  readonly logins: string;
  /** The name under which the file of logins holds the hub's login: the hub's address, or the context's name with its address. */
  readonly loginName: string;
  /** Shows a note to the operator while the command goes on. */
  readonly note: (text: string) => void;
}

/** If no hub answers, the error of `fetchFrom` names the hub's address and the settings that give the address. */
export async function fetchFrom(url: string, path: string, request: RequestInit): Promise<Response> {
  try {
    return await fetch(`${url}${path}`, request);
  } catch (error) {
    const { message, cause } = error instanceof Error ? error : new Error(String(error));
    const why = cause instanceof Error ? `${message}: ${cause.message}` : message;
    throw new Away(
      `The hub at ${url} could not be reached (${why}). Check that it runs, and that --hub or MUSTER_URL is right.`,
    );
  }
}

export const flagText = (values: Readonly<Record<string, unknown>>, name: string): string | undefined => {
  const value = values[name];
  return typeof value === "string" ? value : undefined;
};

type Environment = Readonly<Record<string, string | undefined>>;

/** Says which hub a command uses, and makes the command trust the CA that the operator names. */
export async function hubOf(values: Readonly<Record<string, unknown>>, env: Environment): Promise<InForce> {
  const found = await inForce(values, env);
  await trustOnly(found.caFile?.value);
  return found;
}

export async function targetOf(
  values: Readonly<Record<string, unknown>>,
  env: Environment,
  note: (text: string) => void = noteToPerson,
): Promise<Target> {
  const { url, tokenFile, tokenVariable, login: loginName, context } = await hubOf(values, env);
  const logins = credentialsFile(env);
  const target = { url: url.value, token: null, login: null, noToken: null, logins, loginName, note };
  if (tokenFile !== null) return { ...target, token: read(tokenFile.value).trim() };
  if (tokenVariable !== null) return { ...target, token: tokenVariable.value };
  const login = await readLogin(logins, loginName);
  if (login?.kind === "token") return { ...target, token: login.token };
  if (login !== null) return { ...target, login };
  // The token of the hub on this machine is no token of another hub that a context names.
  if (context !== null)
    return {
      ...target,
      noToken: `The context ${context.value} has no token. Run: muster login --context ${context.value}`,
    };
  if (!isLoopback(url.value)) return { ...target, noToken: notHere(url.value) };
  const found = defaultToken("/", env);
  return found.ok ? { ...target, token: found.token } : { ...target, noToken: found.message };
}

const noteToPerson = (text: string): void => void process.stderr.write(text);

/** Returns the token for a request. Only a command with an expired login loads the code of the renewal. */
async function presentToken({ token, login, logins: file, loginName }: Target): Promise<string | null> {
  if (login === null) return token;
  if (isFresh(login)) return login.access_token;
  const { renewLogin } = await import("./provider.ts");
  return withLock(file, async () => {
    // Another command may have renewed the login, or logged out, while this command waited for the lock.
    const now = await readLogin(file, loginName);
    if (now?.kind !== "provider") return now?.token ?? null;
    if (isFresh(now)) return now.access_token;
    const renewed = await renewLogin(now);
    await writeLogin(file, loginName, renewed);
    return renewed.access_token;
  });
}

/** Makes the command trust only the CA that the operator names, and no CA of the operating system. */
async function trustOnly(caFile: string | undefined): Promise<void> {
  if (caFile === undefined || caFile === "") return;
  // The module of TLS takes as long to load as Node.js itself takes to start.
  const { setDefaultCACertificates } = await import("node:tls");
  try {
    setDefaultCACertificates([read(caFile)]);
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`${caFile} contains no CA certificate in PEM. Correct --ca-file or MUSTER_CA_FILE.`);
  }
}

export const read = (file: string): string => {
  try {
    return readFileSync(file === "-" ? 0 : file, "utf8");
  } catch (error) {
    throw new UsageError(`${file} could not be read: ${error instanceof Error ? error.message : String(error)}`);
  }
};

interface Question {
  readonly method: string;
  readonly invocation: Invocation;
  readonly headers?: Readonly<Record<string, string>>;
  /** True if the hub stores the answer of the request under an idempotency key and can give the stored answer again. */
  readonly repeatable?: boolean;
  /** The idempotency key of the request; without it a repeatable request gets a new key. */
  readonly key?: string;
  /** The deadline of the request in milliseconds; undefined for a stream, which has no end. */
  readonly deadlineMs?: number;
  /** Ends the request. */
  readonly signal?: AbortSignal;
}

/**
 * The longest time that a command waits before its second attempt, after the hub refused the command for too many requests. If the hub demands a wait
 * longer than `MOST_WAIT_SECONDS`, the operator must repeat the command.
 */
const MOST_WAIT_SECONDS = 60;

/**
 * Returns how many seconds the command waits before it repeats a refused request. `secondsToWait` returns zero if the command must not repeat the
 * request.
 */
function secondsToWait(response: Response): number {
  const seconds = Number(response.headers.get("retry-after") ?? Number.NaN);
  return response.status === 429 && seconds > 0 && seconds <= MOST_WAIT_SECONDS ? seconds : 0;
}

function endOf(deadlineMs: number | undefined, signal: AbortSignal | undefined): { signal?: AbortSignal } {
  const ends = [
    ...(deadlineMs === undefined ? [] : [AbortSignal.timeout(deadlineMs)]),
    ...(signal === undefined ? [] : [signal]),
  ];
  return ends.length === 0 ? {} : { signal: AbortSignal.any(ends) };
}

/**
 * The command repeats a request only if the hub's answer says that the hub did nothing and when the command may send the request again. Both attempts
 * of a repeated request carry the same idempotency key; a new command gets a new key. After every failure except a refusal that says when to try
 * again, the operator decides whether to repeat the command.
 */
export async function call(
  target: Target,
  { method, invocation, headers: own, repeatable, key, deadlineMs, signal }: Question,
): Promise<Response> {
  const headers: Record<string, string> = { accept: "application/json, text/event-stream", ...own };
  const token = await presentToken(target);
  if (token !== null) headers["authorization"] = `Bearer ${token}`;
  if (repeatable === true) headers["idempotency-key"] = key ?? crypto.randomUUID();
  if (invocation.body !== null) headers["content-type"] = "application/json";
  const search = invocation.query.size === 0 ? "" : `?${invocation.query}`;
  const send = (): Promise<Response> =>
    fetchFrom(target.url, `${invocation.path}${search}`, {
      method,
      headers,
      ...(invocation.body === null ? {} : { body: JSON.stringify(invocation.body) }),
      ...endOf(deadlineMs, signal),
    });
  let response = await send();
  const wait = secondsToWait(response);
  if (wait > 0) {
    target.note(`This token has sent the hub too many requests; trying again in ${wait} s.\n`);
    await response.body?.cancel();
    await pause(wait * 1000);
    response = await send();
  }
  if (response.ok) return response;
  const problem = problemText(response.status, await response.json().catch(() => null));
  const advice = target.login === null ? (target.noToken ?? "") : "If your login has ended, run: muster login";
  throw new Refused(response.status === 401 ? `${problem}${advice}` : problem, response.status);
}
