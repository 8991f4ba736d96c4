import { createHash } from "node:crypto";
import type { Signal, SignalResult, StoredOutcome } from "../../shared/api/signals.ts";
import { CONDITION_TYPES } from "../../shared/condition-types.ts";
import type { NodeId, SiteId } from "../../shared/ids.ts";
import { canonicalJson } from "../../shared/json.ts";
import { withoutCredentials } from "../../shared/without-credentials.ts";
import { KEPT_OF_A_NODE, KEPT_WITHOUT_NODE } from "../db/kept.ts";
import { newestAttempts } from "../db/queries/external-attempts.ts";
import { readConditionFacts, readOwnTypes, writeConditions } from "../db/queries/node-conditions.ts";
import {
  countWaiting,
  firstSignals,
  forgetHomeless,
  forgetOldReceived,
  insertReceived,
  type StoredSignal,
} from "../db/queries/received-signals.ts";
import { type FittingNode, fittingNodes, kindOf, lockNodesOfSignals } from "../db/queries/signal-nodes.ts";
import type { Tx } from "../db/tx.ts";
import { admitExternalNode } from "./external/admit-node.ts";
import { toldFormer } from "./external/former-system.ts";
import { type Judged, judgeSignal } from "./signal-verdict.ts";

export interface Sender {
  readonly name: string;
  /** The sites to which the sender of readiness signals is limited; null for a sender without a limit. */
  readonly sites: readonly SiteId[] | null;
}

export const isOfSender = ({ siteId }: Pick<FittingNode, "siteId">, sites: Sender["sites"]): boolean =>
  sites === null || (siteId !== null && sites.includes(siteId));

const hashOf = (signal: Signal): string => createHash("sha256").update(canonicalJson(signal)).digest("hex");

/** A signal that the hub is about to accept, with the facts that the hub has read once for all signals of the request. */
interface Taking {
  readonly signal: Signal;
  readonly sender: Sender;
  readonly contentSha256: string;
  readonly first: StoredSignal | undefined;
  readonly fitting: readonly FittingNode[];
}

/**
 * Takes readiness signals in the order of the list, and returns what became of each. `takeSignals` locks all nodes that the readiness signals name
 * until the transaction ends, so that no node's generation changes between the decision about a signal and the write.
 */
export async function takeSignals(tx: Tx, sender: Sender, signals: readonly Signal[]): Promise<SignalResult[]> {
  const hashes = signals.map(hashOf);
  const ids = signals.map(({ signal_id }) => signal_id);
  const first = new Map((await firstSignals(tx, sender.name, ids)).map((one) => [one.signalId, one]));
  const fitting = await fittingNodes(
    tx,
    signals.map(({ node }) => node),
  );
  const nodes = await lockNodesOfSignals(tx, [...new Set([...fitting.values()].flat().map(({ id }) => id))]);
  const waiting = await countWaiting(tx, sender.name);
  let isAnyHomeless = false;
  const results: SignalResult[] = [];
  for (const [place, signal] of signals.entries()) {
    const contentSha256 = hashes[place] as string;
    const living = (fitting.get(place) ?? []).flatMap(({ id }) => nodes.get(id) ?? []);
    const taking = { signal, sender, contentSha256, first: first.get(signal.signal_id), fitting: living };
    const { result, stored } = await takeOne(tx, taking, waiting);
    if (isWaiting(stored)) {
      waiting.sender += 1;
      waiting.all += 1;
    }
    if (isWaiting(stored) || stored === "reused") isAnyHomeless = true;
    if (stored !== null && stored !== "reused")
      first.set(signal.signal_id, {
        ...result,
        signalId: signal.signal_id,
        contentSha256,
        outcome: stored,
        nodeId: result.node_id,
        isOver: false,
      });
    results.push(result);
  }
  if (isAnyHomeless) await forgetHomeless(tx, sender.name, KEPT_WITHOUT_NODE.homelessOfSender);
  return results;
}

interface Taken {
  readonly result: SignalResult;
  /** The outcome of the readiness signal that the hub has stored; null if the hub has not stored the signal. */
  readonly stored: StoredOutcome | null;
}

const told = (
  signal: Signal,
  outcome: SignalResult["outcome"],
  detail: string | null,
  node?: FittingNode,
): SignalResult => ({
  signal_id: signal.signal_id,
  outcome,
  node_id: node?.id ?? null,
  node_generation: node?.generation ?? null,
  detail,
});

/**
 * A readiness signal about a node outside of the sender's sites waits like a signal whose node does not exist (a parked signal), and counts in the
 * same limits.
 */
const isWaiting = (stored: Taken["stored"]): boolean => stored === "parked" || stored === "foreign";

async function takeOne(tx: Tx, taking: Taking, waiting: { sender: number; all: number }): Promise<Taken> {
  const { signal, sender, first, fitting } = taking;
  if (first !== undefined) return takeAgain(tx, taking, first);
  const own = fitting.filter((node) => isOfSender(node, sender.sites));
  const [node, another] = own;
  if (another !== undefined) return { result: told(signal, "ambiguous", toldAmbiguous(signal, own)), stored: null };
  if (node !== undefined) return takeAbout(tx, taking, node);
  // A sender must not learn that a node exists at a site outside of the sender's sites, so the hub answers a signal about such a node as if the node
  // were unknown.
  const foreign = fitting[0];
  if (waiting.sender >= KEPT_WITHOUT_NODE.parkedOfSender || waiting.all >= KEPT_WITHOUT_NODE.parked)
    return { result: told(signal, "refused", PARKED_FULL), stored: null };
  const outcome = foreign === undefined ? "parked" : "foreign";
  if (!(await store(tx, taking, { outcome, detail: null }, foreign ?? null))) return known(taking);
  return { result: told(signal, "parked", toldParked(signal)), stored: outcome };
}

const PARKED_FULL =
  "No node fits, and too many signals wait for a node already. Send the signal again when the node exists, or name the node by another of its names.";
const toldParked = ({ node }: Signal): string =>
  `No node has this ${kindOf(node)} yet. The hub applies the signal when a node appears within a day.`;

const toldAmbiguous = ({ node }: Signal, own: readonly FittingNode[]): string =>
  `${own.length} nodes have this ${kindOf(node)}: ${own
    .slice(0, 5)
    .map(({ hostname, id, siteId }) => `${hostname} (node ${id}, site ${siteId ?? "none"})`)
    .join(", ")}. Name the node by its id, or add site_id.`;

/** A readiness signal whose id the sender has used before is a repetition, or has another content and is kept for people to see. */
async function takeAgain(tx: Tx, taking: Taking, first: StoredSignal): Promise<Taken> {
  if (first.contentSha256 === taking.contentSha256) return known({ ...taking, first });
  const detail =
    "another signal of this sender has the same signal_id and another content; send a new signal_id for each signal";
  await store(tx, taking, { outcome: "reused", detail }, null);
  return { result: told(taking.signal, "reused", detail), stored: "reused" };
}

function known({ signal, first, fitting, sender }: Taking): Taken {
  const node = fitting.find(({ id, siteId }) => id === first?.nodeId && isOfSender({ siteId }, sender.sites));
  const was = first !== undefined && isWaiting(first.outcome) ? (first.isOver ? "expired" : "parked") : first?.outcome;
  const left = was === "applied" && first?.detail ? `, ${first.detail}` : "";
  const detail = was === undefined ? null : `the hub has taken this signal before, and it was ${was}${left}`;
  return { result: told(signal, "known", detail, node), stored: null };
}

async function takeAbout(tx: Tx, taking: Taking, node: FittingNode): Promise<Taken> {
  const { signal } = taking;
  const judged = await judgeNow(tx, signal, node, null);
  if (judged.outcome === "applied" && !(await hasRoom(tx, node.id, judged)))
    return { result: told(signal, "refused", toldFull(node), node), stored: null };
  if (!(await store(tx, taking, judged, node))) return known(taking);
  await apply(tx, node, judged, null);
  await forgetOldReceived(tx, node.id, KEPT_OF_A_NODE.receivedSignals);
  return { result: told(signal, judged.outcome, judged.detail, node), stored: judged.outcome };
}

const toldFull = ({ hostname }: FittingNode): string =>
  `Node ${hostname} would have conditions of more than ${KEPT_OF_A_NODE.ownConditions} types that Muster does not know. Use fewer types, or clear the node's with POST /api/v1/admin/nodes/{id}/clear-reports.`;

/** The hub keeps a condition of an unknown type until somebody clears it, so the number of such conditions of one node is limited. */
export async function hasRoom(tx: Tx, nodeId: NodeId, { conditions }: Judged): Promise<boolean> {
  const types = conditions.map(({ type }) => type).filter((type) => !Object.hasOwn(CONDITION_TYPES, type));
  if (types.length === 0) return true;
  return new Set([...(await readOwnTypes(tx, nodeId)), ...types]).size <= KEPT_OF_A_NODE.ownConditions;
}

/**
 * Judges a readiness signal by the present conditions of the node. `arrived` is the time at which a parked readiness signal arrived; null for a
 * signal that arrives now.
 */
export async function judgeNow(
  tx: Tx,
  signal: Pick<Signal, "generation" | "conditions">,
  node: FittingNode,
  arrived: Date | null,
): Promise<Judged> {
  const attempt = signal.generation === undefined ? (await newestAttempts(tx, [node.id])).get(node.id) : undefined;
  const former = attempt === undefined ? null : toldFormer(attempt, arrived);
  if (former !== null) return { outcome: "stale", conditions: [], detail: former };
  const held = await readConditionFacts(
    tx,
    [node.id],
    signal.conditions.map(({ type }) => type),
  );
  return judgeSignal(signal, node, held, arrived !== null);
}

/** `arrived` is the time at which a parked readiness signal arrived, and from which its report counts; null for a signal that arrives now. */
export async function apply(
  tx: Tx,
  node: FittingNode,
  { outcome, conditions }: Judged,
  arrived: Date | null,
): Promise<void> {
  if (outcome !== "applied") return;
  const cleaned = conditions.map((one) => ({ ...one, message: withoutCredentials(one.message) }));
  await writeConditions(tx, node, "external", cleaned, arrived);
  await admitExternalNode(tx, node.id);
}

const store = (
  tx: Tx,
  { signal, sender, contentSha256 }: Taking,
  { outcome, detail }: { readonly outcome: StoredOutcome; readonly detail: string | null },
  node: FittingNode | null,
): Promise<boolean> =>
  insertReceived(
    tx,
    {
      sender: sender.name,
      signalId: signal.signal_id,
      contentSha256,
      outcome,
      detail,
      named: signal.node,
      nodeId: outcome === "foreign" ? null : (node?.id ?? null),
      siteId: node === null ? (signal.node.site_id ?? null) : node.siteId,
      senderSites: sender.sites === null ? null : [...sender.sites],
      generation: signal.generation ?? null,
      bootId: signal.boot_id ?? null,
      conditions: signal.conditions.map((one) => ({ ...one, message: withoutCredentials(one.message) })),
    },
    KEPT_WITHOUT_NODE.parkedSeconds,
  );
