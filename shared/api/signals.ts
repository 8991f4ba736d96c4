import { z } from "zod";
import { NodeId, SiteId } from "../ids.ts";
import { Int4 } from "../int4.ts";
import { ForeignReadinessSignal } from "../readiness.ts";
import { Hostname, MacAddress, Timestamp } from "./values.ts";

/** The largest number of readiness signals in one request. */
export const SIGNALS_AT_ONCE = 100;

/** The ways in which a signal can name its node, in the words of the API. */
export const NODE_NAMES = ["id", "hostname", "mac", "serial", "maas_system_id"] as const;
export type NodeNameKind = (typeof NODE_NAMES)[number];

/** Names one node in one way. Of hosts with one name at several sites, `site_id` says which one is meant. */
export const NamedNode = z
  .strictObject({
    id: NodeId.optional(),
    hostname: Hostname.optional(),
    mac: MacAddress.optional().describe("A MAC address of the host, in lower case with colons"),
    serial: z.string().min(1).max(128).optional().describe("The serial number of the machine, as MAAS shows it"),
    maas_system_id: z.string().min(1).max(64).optional(),
    site_id: SiteId.optional(),
  })
  .refine(
    (named) => NODE_NAMES.filter((kind) => named[kind] !== undefined).length === 1,
    `must name the node in exactly one way: ${NODE_NAMES.join(", ")}`,
  );
export type NamedNode = z.output<typeof NamedNode>;

/** The largest number of characters in the id of a readiness signal. */
export const SIGNAL_ID_LENGTH = 336;
const SignalId = z.string().regex(/^[\x21-\x7e]{1,336}$/, "must be 1 to 336 visible ASCII characters without spaces");

/** A report of conditions of one node. A signal without `generation` is about the node's present generation. */
export const Signal = z.strictObject({
  signal_id: SignalId.describe("The sender's own id of the signal; the hub accepts each id of a sender once"),
  node: NamedNode,
  generation: Int4.optional(),
  boot_id: ForeignReadinessSignal.shape.boot_id,
  conditions: ForeignReadinessSignal.shape.conditions,
});
export type Signal = z.output<typeof Signal>;

/** The hub checks each readiness signal of a request by itself, so that one wrong signal does not keep the hub from accepting the others. */
export const SignalBatch = z.strictObject({ signals: z.array(z.unknown()).min(1).max(SIGNALS_AT_ONCE) });
export const SignalBatchCreate = z.strictObject({ signals: z.array(Signal).min(1).max(SIGNALS_AT_ONCE) });

/**
 * What the hub did with a stored signal, and why.
 * - `applied`: at least one condition of the signal is the newest report.
 * - `parked`: no node fits the signal yet.
 * - `expired`: no node has fitted the signal for a day.
 * - `stale`: the signal is about an earlier generation of the node.
 * - `early`: the signal is about a generation that the node does not have yet.
 * - `late`: the hub has a newer report of each condition of the signal.
 * - `conflicting`: another report about the same moment gives the condition a worse status.
 * - `reused`: an earlier signal of the same sender has the same id and other content.
 * - `foreign`: the node of the signal belongs to no site of the sender.
 */
export const STORED_OUTCOMES = [
  "applied",
  "parked",
  "expired",
  "stale",
  "early",
  "late",
  "conflicting",
  "reused",
  "foreign",
] as const;
export type StoredOutcome = (typeof STORED_OUTCOMES)[number];

/**
 * `known`: the hub has accepted a signal of the same sender and id before. `invalid`, `ambiguous` and `refused`: the hub has not stored the signal,
 * and `detail` says why.
 */
const Outcome = z.enum([
  ...STORED_OUTCOMES.filter((one) => one !== "expired"),
  "known",
  "invalid",
  "ambiguous",
  "refused",
]);

export const SignalResult = z.strictObject({
  signal_id: z.string().nullable(),
  outcome: Outcome,
  node_id: NodeId.nullable(),
  node_generation: z.int().nullable(),
  detail: z.string().nullable(),
});
export type SignalResult = z.output<typeof SignalResult>;

/** The list `results` has the order of the signals in the request. */
export const SignalsTaken = z.strictObject({ accepted: z.int(), refused: z.int(), results: z.array(SignalResult) });

/** A readiness signal of an external system about a node, as the hub has stored it. */
export const ReceivedSignal = z.strictObject({
  id: z.uuid(),
  sender: z.string(),
  signal_id: z.string(),
  outcome: z.enum(STORED_OUTCOMES),
  detail: z.string().nullable(),
  node: NamedNode,
  node_id: NodeId.nullable(),
  generation: z.int().nullable(),
  boot_id: z.string().nullable(),
  conditions: ForeignReadinessSignal.shape.conditions,
  received_at: Timestamp,
  /** When the hub decided what it does with the signal; null for a parked signal, which waits for its node until `parked_until`. */
  decided_at: Timestamp.nullable(),
  parked_until: Timestamp.nullable(),
});
