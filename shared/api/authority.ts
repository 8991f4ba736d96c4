import { z } from "zod";
import { NodeId } from "../ids.ts";
import { NodeStatus } from "../node-status.ts";
import { ROTATION_PHASES } from "../trust.ts";
import { Reason } from "./decommissions.ts";
import { Timestamp } from "./values.ts";

const keys = {
  ca_sha256: z.string(),
  ca_not_after: Timestamp,
  /** The public key with which agents check the hub's signatures of task orders: base64url of the raw Ed25519 key. */
  order_key: z.string(),
};

export const Authority = z.strictObject({
  generation: z.int(),
  /** The hub announces its own keys to hosts in numbered statements; `sequence` is the number of the newest statement. */
  sequence: z.int(),
  current: z.strictObject(keys),
  /** The generation of hub keys that the hub has announced to hosts but does not use yet. */
  next: z.strictObject({ generation: z.int(), ...keys }).nullable(),
  /** `hosts` counts all enrolled hosts, and `informed` those that trust the newest statement about the hub's keys. */
  hosts: z.int(),
  informed: z.int(),
  /** Some of the hosts that do not trust the newest statement about the hub's keys yet, the most recently seen host first. */
  missing: z.array(z.strictObject({ id: NodeId, hostname: z.string(), status: NodeStatus, last_seen_at: Timestamp })),
});

export const AuthorityRotation = z.strictObject({
  generation: z.int(),
  sequence: z.int(),
  phase: z.enum(ROTATION_PHASES),
});
export const AuthorityRotationStart = z.strictObject({ reason: Reason });
export const AuthorityRotationFinish = z.strictObject({ reason: Reason, force: z.boolean().default(false) });
