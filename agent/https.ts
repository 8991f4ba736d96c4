import { request } from "node:https";
import { z } from "zod";
import { MAX_FRAME_BYTES } from "../shared/protocol/version.ts";
import { messageOf } from "./message-of.ts";

/** The agent trusts only the hub's own CA, never the system's list of CAs. */
export interface TlsIdentity {
  readonly ca: string;
  readonly cert?: string;
  readonly key?: string;
}

export class HubRefusal extends Error {
  override readonly name = "HubRefusal";
  readonly status: number;
  readonly code: string;
  constructor(status: number, code: string, detail: string) {
    super(detail);
    this.status = status;
    this.code = code;
  }
}
/** Thrown when the hub gave no usable answer: no connection, a certificate of another CA, or a proxy's page. */
class HubUnreachable extends Error {
  override readonly name = "HubUnreachable";
}

const ProblemBody = z.object({ code: z.string(), detail: z.string() });

export interface HubRequest {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly body?: unknown;
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

/**
 * Throws HubRefusal for an error response in the problem format of RFC 9457. Throws HubUnreachable if no answer arrives, or if the answer is neither
 * as expected nor a problem of RFC 9457.
 */
export async function askHub<T>(hub: URL, tls: TlsIdentity, ask: HubRequest, schema: z.ZodType<T>): Promise<T> {
  const { status, text } = await exchange(hub, tls, ask).catch((error: unknown) => {
    throw new HubUnreachable(explain(error), { cause: error });
  });
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    throw new HubUnreachable(
      `The answer to ${ask.method} ${ask.path} (status ${status}) is not the hub's: it is not JSON. Is there a proxy in between?`,
      { cause: error },
    );
  }
  if (status >= 200 && status < 300) {
    const parsed = schema.safeParse(json);
    if (parsed.success) return parsed.data;
    throw new HubUnreachable(
      `The hub's answer to ${ask.method} ${ask.path} is not understood; is it of another version?`,
    );
  }
  const problem = ProblemBody.safeParse(json);
  if (!problem.success)
    throw new HubUnreachable(`The answer to ${ask.method} ${ask.path} (status ${status}) is not the hub's.`);
  throw new HubRefusal(status, problem.data.code, problem.data.detail);
}

/**
 * Sends a request to the hub's address without a certificate of the agent, and without checking the server's certificate. The caller of `askUnproven`
 * must verify the signatures in the hub's answer.
 */
export async function askUnproven<T>(hub: URL, path: string, schema: z.ZodType<T>): Promise<T> {
  const { text } = await exchange(hub, null, { method: "GET", path }).catch((error: unknown) => {
    throw new HubUnreachable(explain(error), { cause: error });
  });
  try {
    return schema.parse(JSON.parse(text));
  } catch (error) {
    throw new HubUnreachable(
      `The answer to GET ${path} is not understood. Is it the hub that answers, and a newer one?`,
      {
        cause: error,
      },
    );
  }
}

/** True if an error says that the server's certificate is from a CA that this host does not trust. */
export function isOtherCa(error: unknown): boolean {
  for (let at = error; at instanceof Error; at = at.cause)
    if ("code" in at && OTHER_CA.has(String(at.code))) return true;
  return false;
}

/** If `tls` is null, the agent does not verify the server's certificate. */
function exchange(hub: URL, tls: TlsIdentity | null, ask: HubRequest): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const body = ask.body === undefined ? null : JSON.stringify(ask.body);
    const outgoing = request(
      new URL(ask.path, hub),
      {
        method: ask.method,
        ...(tls ?? { rejectUnauthorized: false }),
        agent: false,
        timeout: ask.timeoutMs ?? 30_000,
        ...(ask.signal === undefined ? {} : { signal: ask.signal }),
        headers: body === null ? {} : { "content-type": "application/json", "content-length": Buffer.byteLength(body) },
      },
      (answer) => {
        const chunks: Buffer[] = [];
        let size = 0;
        answer.on("data", (chunk: Buffer) => {
          size += chunk.length;
          if (size > 4 * MAX_FRAME_BYTES) outgoing.destroy(new Error("the answer is too large"));
          chunks.push(chunk);
        });
        answer.on("end", () =>
          resolve({ status: answer.statusCode ?? 0, text: Buffer.concat(chunks).toString("utf8") }),
        );
        answer.on("error", reject);
      },
    );
    outgoing.on("timeout", () => outgoing.destroy(new Error("no answer in time")));
    outgoing.on("error", reject);
    outgoing.end(body ?? undefined);
  });
}

/** Node.js's error codes for a server certificate from a CA that the host does not trust. */
const OTHER_CA: ReadonlySet<string> = new Set([
  "SELF_SIGNED_CERT_IN_CHAIN",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
  // CERT_SIGNATURE_FAILURE means another CA with an equal name, for example of a hub that was installed a second time.
  "CERT_SIGNATURE_FAILURE",
]);
const OF_OTHER_CA =
  "The hub's certificate is not of the CA that this host was given. Is the hub's address right? If the hub was set up anew, or changed its CA while this host was off for long, ask an operator to re-enroll the node (re-enroll-node) and run the command here.";
const EXPLANATIONS: Readonly<Record<string, string>> = {
  ...Object.fromEntries([...OTHER_CA].map((code) => [code, OF_OTHER_CA])),
  ECONNREFUSED: "Nothing listens at the hub's address. Is the hub up, and the address right?",
  ENOTFOUND: "The hub's name cannot be resolved. Check DNS.",
  EAI_AGAIN: "The hub's name cannot be resolved right now. Check DNS.",
  EHOSTUNREACH: "There is no route to the hub.",
  ENETUNREACH: "There is no route to the hub.",
  ERR_TLS_CERT_ALTNAME_INVALID: "The hub's certificate is for another name than its address.",
  CERT_HAS_EXPIRED: "The hub's certificate has expired. Check this host's clock.",
  CERT_NOT_YET_VALID: "The hub's certificate is not valid yet. Check this host's clock.",
};

/** Tells an operator what an error on the way to the hub means, and what to check. */
export function explain(error: unknown): string {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  return EXPLANATIONS[code] ?? `The hub cannot be reached: ${messageOf(error)}`;
}
