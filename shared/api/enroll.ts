import { z } from "zod";
import { NodeId } from "../ids.ts";
import { Int4 } from "../int4.ts";

/**
 * A node's client certificate names the node in a URI SAN (subject alternative name). The hub reads no other field of a node's certificate than the
 * URI SAN.
 */
export const nodeUri = (nodeId: NodeId): string => `spiffe://muster/node/${nodeId}`;

export const EnrollRequest = z.strictObject({
  protocol_version: Int4,
  node_id: NodeId,
  token: z.string().min(32).max(128),
  /**
   * The agent's certificate request is PKCS#10 in PEM. The only SAN of the certificate request must be `nodeUri(node_id)`. The agent never sends its
   * private key to the hub.
   */
  csr_pem: z.string().min(64).max(8192),
  hostname: z.string().min(1).max(253),
  boot_id: z.string().min(1).max(64),
  agent_version: z.string().min(1).max(64),
  /**
   * The MAC addresses of the host's interfaces, in lower case. If the enrollment token is bound to MAC addresses, the hub compares the host's MAC
   * addresses with the token's.
   */
  macs: z.array(z.string().regex(/^[0-9a-f]{2}(:[0-9a-f]{2}){5}$/)).max(256),
});
export type EnrollRequest = z.output<typeof EnrollRequest>;

export const EnrollResponse = z.strictObject({
  node_id: NodeId,
  generation: z.int().min(0),
  certificate_pem: z.string(),
  ca_pem: z.string(),
  not_after: z.iso.datetime({ offset: true }),
  /** The public key with which the agent checks the hub's task orders: base64url of the raw 32-byte Ed25519 key. */
  task_signing_public_key: z.string(),
});
export type EnrollResponse = z.output<typeof EnrollResponse>;

export const RenewRequest = z.strictObject({ csr_pem: z.string().min(64).max(8192) });
export type RenewRequest = z.output<typeof RenewRequest>;
