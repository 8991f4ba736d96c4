import { z } from "zod";
import { canonicalJson } from "./json.ts";

/**
 * This file defines how a host comes to trust a new CA and order key of the hub (decision I6). The hub's keys, which are a CA and an order key, have
 * generations. Each change of the hub's keys is a statement that the hub signs with its previous order key. All statements about the hub's keys form
 * one chain. A host that knows any key of the chain of statements can verify the newest key, however long the host was off. Nothing but a signed
 * statement makes a host trust a new key of the hub.
 */
export const TRUST_KINDS = ["announce", "finish", "abort"] as const;
export type TrustKind = (typeof TRUST_KINDS)[number];
/** The phase that the rotation of the hub's keys enters with each kind of statement, for example `announced` with `announce`. */
export const ROTATION_PHASES = {
  announce: "announced",
  finish: "in_force",
  abort: "aborted",
} as const satisfies Record<TrustKind, string>;

const Keys = {
  /** The certificate of the CA that signs the hub's and the hosts' certificates. */
  ca_pem: z.string().min(64).max(8192),
  /** The Ed25519 key that signs task orders and the next statements about the hub's keys: base64url of the raw key. */
  order_key: z.string().regex(/^[A-Za-z0-9_-]{43}$/),
};
export const TrustStatement = z.strictObject({
  sequence: z.int().min(1),
  kind: z.enum(TRUST_KINDS),
  generation: z.int().min(2),
  ...Keys,
  signature: z.string().regex(/^[A-Za-z0-9_-]{86}$/),
});
export type TrustStatement = z.output<typeof TrustStatement>;
export type UnsignedStatement = Omit<TrustStatement, "signature">;
/** A statement about the hub's keys has about 0.8 kB, so 500 statements fit into one message to the host. */
export const MOST_STATEMENTS = 500;
export const TrustChain = z.array(TrustStatement).max(MOST_STATEMENTS);
/** The path at which the hub sends its chain of key statements to every client, without authentication. */
export const TRUST_PATH = "/internal/v1/trust";
export type TrustChain = readonly TrustStatement[];

/**
 * The signed text of a statement about the hub's keys begins with `muster trust v1`, which names the purpose of the text. The signed text of a task
 * order begins otherwise, so the signature of a task order is never valid for a statement about the hub's keys.
 */
export const trustSigningText = ({ sequence, kind, generation, ca_pem, order_key }: UnsignedStatement): string =>
  `muster trust v1\n${canonicalJson({ sequence, kind, generation, ca_pem, order_key })}`;

export const TrustedKeys = z.object(Keys);
export interface Trust {
  /** The number of the last statement about the hub's keys that the host accepted. */
  readonly sequence: number;
  readonly current: z.output<typeof TrustedKeys>;
  /**
   * The hub's next keys, which the hub has announced but does not use yet. A host trusts the announced keys of the hub in addition to the hub's
   * current keys.
   */
  readonly next: (z.output<typeof TrustedKeys> & { readonly generation: number }) | null;
}
export type VerifyText = (orderKey: string, text: string, signature: string) => boolean;

/**
 * Returns which keys of the hub a host trusts after a signed statement about the hub's keys. If the statement is invalid, the function returns the
 * reason as text, and the host does not trust the keys that the statement names.
 */
function trustAfter(trust: Trust, statement: TrustStatement, verify: VerifyText): Trust | string {
  const { sequence, kind, generation, ca_pem, order_key, signature } = statement;
  const { current, next } = trust;
  if (sequence !== trust.sequence + 1) return `statement ${sequence} does not follow ${trust.sequence}`;
  if (!verify(current.order_key, trustSigningText(statement), signature))
    return `statement ${sequence} is not signed by the key in force before it`;
  if (kind === "announce")
    return next === null
      ? { sequence, current, next: { generation, ca_pem, order_key } }
      : `statement ${sequence} announces a generation while another one is announced`;
  if (next?.generation !== generation || next.ca_pem !== ca_pem || next.order_key !== order_key)
    return `statement ${sequence} is about a generation that was not announced`;
  return kind === "finish"
    ? { sequence, current: { ca_pem, order_key }, next: null }
    : { sequence, current, next: null };
}

/**
 * Returns the sequence number of the statement about the hub's keys that put `orderKey` into force. A host that knows only one order key verifies the
 * chain of statements only after the statement that put the key into force.
 */
export const sequenceOf = (chain: TrustChain, orderKey: string): number =>
  chain.findLast((one) => one.kind === "finish" && one.order_key === orderKey)?.sequence ?? 0;

/**
 * Follows the chain of key statements up to its first invalid statement, which `fault` describes. `followTrust` skips the statements about the hub's
 * keys that the host accepted before.
 */
export function followTrust(
  trust: Trust,
  chain: TrustChain,
  verify: VerifyText,
): { readonly trust: Trust; readonly fault: string | null } {
  let followed = trust;
  for (const statement of chain) {
    if (statement.sequence <= followed.sequence) continue;
    const after = trustAfter(followed, statement, verify);
    if (typeof after === "string") return { trust: followed, fault: after };
    followed = after;
  }
  return { trust: followed, fault: null };
}
