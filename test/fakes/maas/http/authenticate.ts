import type { IncomingMessage } from "node:http";
import { Refusal } from "../engine/refusal.ts";
import type { Region } from "../engine/region.ts";
import type { User } from "../state/model.ts";

/** The maximum age, in seconds, of the timestamp in a signed request. */
const MAX_AGE_S = 300;
/** How long the simulator remembers used OAuth nonces, in milliseconds. MAAS itself keeps OAuth nonces for a day. */
const NONCE_KEEP_MS = 900_000;
const NEEDED = [
  "oauth_consumer_key",
  "oauth_token",
  "oauth_signature",
  "oauth_signature_method",
  "oauth_timestamp",
  "oauth_nonce",
] as const;

function refuse(message: string): Refusal {
  return new Refusal(401, `Authorization Error: ${message}`, "text/html; charset=utf-8", {
    "WWW-Authenticate": 'OAuth realm="OAuth"',
  });
}

type OAuth = Record<(typeof NEEDED)[number], string>;

function oauthOf(request: IncomingMessage): OAuth | null {
  const header = request.headers.authorization;
  if (header === undefined || !header.startsWith("OAuth ")) return null;
  const found: Record<string, string> = {};
  for (const part of header.slice("OAuth ".length).split(",")) {
    const match = /^\s*([^=\s]+)="?([^"]*)"?\s*$/.exec(part);
    if (match?.[1] === undefined || match[2] === undefined) continue;
    try {
      found[match[1]] = decodeURIComponent(match[2]);
    } catch {
      return null;
    }
  }
  return NEEDED.every((name) => found[name] !== undefined) ? (found as OAuth) : null;
}

export interface Secret {
  token_key: string;
  token_secret: string;
}

function checkSignature(oauth: OAuth, secret: Secret): void {
  const expected = `&${encodeURIComponent(secret.token_secret)}`;
  if (oauth.oauth_signature_method !== "PLAINTEXT")
    throw refuse(
      `'Signature method ${oauth.oauth_signature_method} not supported try one of the following: PLAINTEXT'`,
    );
  // MAAS's error text for a wrong signature contains the expected secret, so no client may log the body of a 401.
  if (oauth.oauth_signature !== expected)
    throw refuse(`'Invalid signature. Expected signature base string: ${expected}'`);
}

function checkTime(oauth: OAuth, nowMs: number): void {
  const now = Math.floor(nowMs / 1000);
  const given = Number(oauth.oauth_timestamp);
  if (!Number.isInteger(given)) throw refuse("Invalid timestamp");
  if (now - given > MAX_AGE_S)
    throw refuse(
      `'Expired timestamp: given ${given} and now ${now} has a greater difference than threshold ${MAX_AGE_S}'`,
    );
}

function useNonce(region: Region, oauth: OAuth): void {
  const now = region.now();
  const key = `${oauth.oauth_consumer_key} ${oauth.oauth_token} ${oauth.oauth_nonce}`;
  if (region.state.nonces[key] !== undefined) throw refuse(`'Nonce already used: ${oauth.oauth_nonce}'`);
  // The simulator removes old nonces rarely, because each removal searches all stored nonces.
  if (now - region.noncesForgottenAt > NONCE_KEEP_MS) {
    const { nonces } = region.state;
    region.state.nonces = Object.fromEntries(Object.entries(nonces).filter(([, at]) => now - at <= NONCE_KEEP_MS));
    region.noncesForgottenAt = now;
  }
  region.state.nonces[key] = now;
  region.changed();
}

/**
 * Returns the user whose token signed the request, or null for an unsigned request. For an invalid signature, `authenticate` throws 401 with MAAS's
 * error text.
 */
export function authenticate(region: Region, request: IncomingMessage): User | null {
  const oauth = oauthOf(request);
  if (oauth === null) return null;
  const { users } = region.state;
  if (!users.some((user) => user.tokens.some((token) => token.consumer_key === oauth.oauth_consumer_key)))
    throw refuse("Invalid API key.");
  for (const user of users) {
    const token = user.tokens.find(
      (one) => one.consumer_key === oauth.oauth_consumer_key && one.token_key === oauth.oauth_token,
    );
    if (token === undefined) continue;
    checkTime(oauth, region.toldTime());
    checkSignature(oauth, token);
    useNonce(region, oauth);
    return user;
  }
  throw refuse(`'Invalid access token: ${oauth.oauth_token}'`);
}

/** Returns the system id of the machine whose own token signed the request, or null for any other request. */
export function authenticateMachine(region: Region, request: IncomingMessage): string | null {
  const oauth = oauthOf(request);
  if (oauth === null) return null;
  const machine = region.state.machines.find(
    ({ token }) =>
      token !== null && token.consumer_key === oauth.oauth_consumer_key && token.token_key === oauth.oauth_token,
  );
  if (machine?.token == null) return null;
  checkTime(oauth, region.toldTime());
  checkSignature(oauth, machine.token);
  useNonce(region, oauth);
  return machine.systemId;
}
