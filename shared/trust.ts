import { z } from "zod";
import { canonicalJson } from "./json.ts";

/**
 * How hosts come to trust another CA and order key than those that they were given (decision I6). The hub's keys have generations. Each change is a statement,
 * signed by the order key that is in force before it, and all statements ever made are one chain: whoever knows any key of it follows it to the
 * newest, one signature after the other, however long it was off. Nothing else makes a host believe a key.
 */
export const TRUST_KINDS = ["announce", "finish", "abort"] as const;
export type TrustKind = (typeof TRUST_KINDS)[number];
/** What each makes of a rotation. */
export const ROTATION_PHASES = {
  announce: "announced",
  finish: "in_force",
  abort: "aborted",
} as const satisfies Record<TrustKind, string>;

const Keys = {
  /** Of the CA that signs the hub's and the hosts' certificates. */
  ca_pem: z.string().min(64).max(8192),
  /** Base64url of the raw Ed25519 key that signs task orders, and the next statements. */
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
/** Some 0.8 kB each: all of them fit into a frame. */
export const MOST_STATEMENTS = 500;
export const TrustChain = z.array(TrustStatement).max(MOST_STATEMENTS);
/** Where the hub tells the chain to anybody. */
export const TRUST_PATH = "/internal/v1/trust";
export type TrustChain = readonly TrustStatement[];

/** What is signed: the purpose comes first, so that no signature of an order is one of a statement. */
export const trustSigningText = ({ sequence, kind, generation, ca_pem, order_key }: UnsignedStatement): string =>
  `muster trust v1\n${canonicalJson({ sequence, kind, generation, ca_pem, order_key })}`;

export const TrustedKeys = z.object(Keys);
export interface Trust {
  /** Of the last statement that was followed. */
  readonly sequence: number;
  readonly current: z.output<typeof TrustedKeys>;
  /** Announced and not in force yet: believed beside the current ones. */
  readonly next: (z.output<typeof TrustedKeys> & { readonly generation: number }) | null;
}
export type VerifyText = (orderKey: string, text: string, signature: string) => boolean;

/** The trust after a statement; in words why there is none: then nothing of it may be believed. */
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

/** After which statement a host begins that was given this order key and nothing else: the one that put it into force. */
export const sequenceOf = (chain: TrustChain, orderKey: string): number =>
  chain.findLast((one) => one.kind === "finish" && one.order_key === orderKey)?.sequence ?? 0;

/** Follows the chain as far as it holds; `fault` says where it does not. Statements that were followed before are passed over. */
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
