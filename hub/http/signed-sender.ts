import { createHash } from "node:crypto";
import { ApiError } from "../../shared/api/errors.ts";
import { SenderId } from "../../shared/api/signal-senders.ts";
import type { Log } from "../../shared/log.ts";
import { actorNameOf, readSender, touchSender } from "../db/queries/signal-senders.ts";
import type { Db } from "../db/tx.ts";
import { signingKeys } from "../events/webhook-secret.ts";
import { isSigned } from "../events/webhook-signature.ts";
import type { Actor } from "../people/actor.ts";
import { SECRET_PATHS, type SecretStore } from "../secrets/port.ts";

/** How far the time of a signed request may be from the hub's time. An older signed request may be a recording that somebody sends again. */
const WINDOW_SECONDS = 300;

/** The parts of a request that the specification Standard Webhooks signs. */
export interface SignedRequest {
  /** The id of the sender of a signed request, as the request's query string names it. */
  readonly sender: string;
  readonly id: string | undefined;
  readonly timestamp: string | undefined;
  readonly signature: string | undefined;
  readonly body: () => Promise<string>;
}

/** The hub limits the requests of a sender by the hash of the sender's id, as it limits the requests of a token by the token's hash. */
export const senderHash = (sender: string): string => createHash("sha256").update(`sender:${sender}`).digest("hex");

const isInWindow = (timestamp: string, now: Date): boolean =>
  Math.abs(Number(timestamp) - now.getTime() / 1000) <= WINDOW_SECONDS;

interface Proof {
  readonly db: Db;
  readonly secrets: SecretStore;
  readonly log: Log;
}

/**
 * Returns the sender of a signed request, or the reason why the hub refuses the request. The hub reads the body of a signed request only if the
 * sender is known and the request's timestamp is within `WINDOW_SECONDS` of the hub's time, so that other requests cost the hub little. If somebody
 * records a signed request and sends it again within `WINDOW_SECONDS`, it repeats readiness signals that the hub already knows, and changes nothing.
 */
export async function signedSender(
  { sender, id, timestamp, signature, body }: SignedRequest,
  { db, secrets, log }: Proof,
  now: Date = new Date(),
): Promise<{ readonly actor: Actor } | { readonly refused: string }> {
  if (id === undefined || signature === undefined || timestamp === undefined || !/^\d{1,12}$/.test(timestamp))
    return { refused: "Sign the request: send the headers webhook-id, webhook-timestamp and webhook-signature." };
  if (!isInWindow(timestamp, now))
    return {
      refused: `The webhook-timestamp is more than ${WINDOW_SECONDS} s from the hub's time. Correct the sender's clock, and sign each attempt anew.`,
    };
  const known = SenderId.safeParse(sender);
  const row = known.success ? await readSender(db, known.data) : null;
  if (row === null || row.revokedAt !== null) return WRONG;
  const keys = signingKeys(await secrets.read(SECRET_PATHS.signalSender(row.id)), now);
  if (!isSigned(keys, { id, sentAt: timestamp, body: await body() }, signature)) return WRONG;
  touchSender(db, row.id).catch((error: unknown) =>
    log.warn("the last use of a sender could not be written", { sender: row.name, error }),
  );
  const name = actorNameOf(row.name);
  const reach = { sites: row.sites, tenant: null };
  return { actor: { ...reach, name, via: "none", role: "provisioner", tokenId: null, personId: null } };
}

/**
 * Refuses a signed request with the attributes of a CloudEvent in headers. The signature of a request does not cover the `ce-*` headers, so somebody
 * who has recorded the request could send its body again as another event, with a new id, time or node.
 */
export function mustHaveNoEventHeaders(headers: Readonly<Record<string, string>>): void {
  const given = Object.keys(headers).filter((name) => name.toLowerCase().startsWith("ce-"));
  if (given.length === 0) return;
  throw new ApiError(
    "validation_failed",
    "The signature does not cover the ce-* headers. Send a structured CloudEvent (application/cloudevents+json), whose attributes are in the signed body.",
    {
      errors: given
        .slice(0, 10)
        .map((name) => ({ pointer: `/headers/${name}`, message: "is not taken in a signed request" })),
    },
  );
}

const WRONG = {
  refused: "There is no such sender, it was revoked, or the signature is wrong. Check the secret and the signed text.",
} as const;
