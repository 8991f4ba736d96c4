import { ApiError } from "../../shared/api/errors.ts";
import type { EventType } from "../../shared/events.ts";
import type { NodeId, RepairId } from "../../shared/ids.ts";
import { type HealthIssue, REPAIR_STATES, type RepairEntry } from "../../shared/repair.ts";
import type { REPAIR_EVENTS } from "../../shared/repair-events.ts";
import { withoutCredentials } from "../../shared/without-credentials.ts";
import { recordDomainEvent } from "../db/queries/domain-events.ts";
import { recordNodeEvent } from "../db/queries/node-events.ts";
import { lockNode } from "../db/queries/nodes.ts";
import { type CaseChange, changeCase, insertCase, lockCase, readCase } from "../db/queries/repair-cases.ts";
import { addRepairEvent, countRepairEvents } from "../db/queries/repair-events.ts";
import type { Node, RepairCase } from "../db/schema/index.ts";
import type { Tx } from "../db/tx.ts";
import { applyMarks } from "./apply-marks.ts";
import { afterMove, type RepairMove, verbsFrom } from "./case-moves.ts";
import { redactedChange, redactedDetails } from "./redact.ts";

const EVENT_OF = {
  opened: "repair.opened",
  reported_again: "repair.changed",
  held_back: "repair.held_back",
  requested: "repair.requested",
  request_withdrawn: "repair.changed",
  claimed: "repair.claimed",
  claim_extended: "repair.changed",
  access_given: "repair.changed",
  completed: "repair.repaired",
  failed: "repair.failed",
  lapsed: "repair.failed",
  handed_over: "repair.escalated",
  escalated: "repair.escalated",
  validation_passed: "repair.changed",
  validation_failed: "repair.failed",
  became_full: "repair.changed",
  closed: "repair.closed",
  abandoned: "repair.abandoned",
} as const satisfies Readonly<Record<RepairEntry, EventType & keyof typeof REPAIR_EVENTS>>;

/**
 * A repair case with MOST_ENTRIES timeline entries takes no more entries of the kinds that may be repeated at will (`REPEATABLE`), so that no
 * timeline grows for ever. A change whose timeline entry is not in `REPEATABLE` is always allowed, because a repair case must be able to go on and to
 * end; other limits bound such changes, for example the limit of attempts.
 */
const MOST_ENTRIES = 500;
const REPEATABLE: readonly RepairEntry[] = ["claim_extended", "request_withdrawn"];

export interface Told {
  readonly entry: RepairEntry;
  readonly actor: string;
  readonly message: string;
  readonly details?: Readonly<Record<string, unknown>>;
}

/** Locks a node and its repair case; the node is null if it has no row any more. */
export async function lockNodeAndCase(
  tx: Tx,
  id: RepairId,
): Promise<{ readonly node: Node | null; readonly row: RepairCase }> {
  const seen = await readCase(tx, id);
  const node = seen === null ? null : await lockNode(tx, seen.nodeId);
  const row = await lockCase(tx, id);
  if (row === null) throw new ApiError("not_found", `There is no repair ${id}.`);
  return { node, row };
}

export const contextOf = ({ id, nodeId }: { readonly id: RepairId; readonly nodeId: NodeId }) => ({
  context: { repair_id: id, node_id: nodeId },
});

/**
 * Moves a locked repair case to its next state by CASE_MOVES, and writes its timeline entry, its events and the node's repair marks. Throws
 * `verb_not_allowed` if the state of the repair case does not allow the move.
 */
export async function moveCase(
  tx: Tx,
  row: RepairCase,
  move: RepairMove,
  told: Told,
  change: CaseChange = {},
): Promise<RepairCase> {
  const to = afterMove(row.mode, row.state, move);
  if (to === null) throw notAllowed(row, move.replaceAll("_", " "));
  return write(tx, row, to, told, change);
}

/** Changes a locked repair case that stays in its state. */
export const noteOnCase = (tx: Tx, row: RepairCase, told: Told, change: CaseChange = {}): Promise<RepairCase> =>
  write(tx, row, row.state, told, change);

async function write(
  tx: Tx,
  row: RepairCase,
  to: RepairCase["state"],
  told: Told,
  change: CaseChange,
): Promise<RepairCase> {
  await mustHaveRoom(tx, row, told.entry);
  const moved = await changeCase(tx, row.id, { from: row.state, to }, redactedChange(change));
  if (moved === null) throw new Error(`repair ${row.id} is locked and changed`);
  await tell(tx, moved, told);
  return moved;
}

export function notAllowed(row: RepairCase, what: string): ApiError {
  const verbs = verbsFrom(row.mode, row.state);
  const next = verbs.length === 0 ? "It takes no further change" : `Possible now: ${verbs.join(", ")}`;
  return new ApiError(
    "verb_not_allowed",
    `Repair ${row.id} of node ${row.hostname} (${row.mode}) is ${row.state}: ${REPAIR_STATES[row.state]}. So it takes no ${what}. ${next}.`,
    contextOf(row),
  );
}

async function mustHaveRoom(tx: Tx, row: RepairCase, entry: RepairEntry): Promise<void> {
  if (!REPEATABLE.includes(entry) || (await hasRoom(tx, row.id))) return;
  throw new ApiError(
    "conflict",
    `Repair ${row.id} has ${MOST_ENTRIES} entries, which is the most for this verb. Report the attempt, or escalate the repair.`,
    contextOf(row),
  );
}

const hasRoom = async (tx: Tx, id: RepairId): Promise<boolean> => (await countRepairEvents(tx, id)) < MOST_ENTRIES;

/**
 * Records a change of a repair case. A repeated report of a fault always changes the repair case; if the timeline is full, only the report's timeline
 * entry is left out.
 */
async function tell(tx: Tx, row: RepairCase, told: Told): Promise<void> {
  const { entry, actor } = told;
  const message = withoutCredentials(told.message);
  const details = redactedDetails(told.details ?? {});
  const { id, nodeId, hostname, siteId, mode, state, attempt, repairTenant } = row;
  if (entry !== "reported_again" || (await hasRoom(tx, id)))
    await addRepairEvent(tx, { repairId: id, nodeId, type: entry, attempt, actor, message, details });
  await recordNodeEvent(tx, {
    nodeId,
    type: "repair",
    owner: actor,
    message: `Repair ${id} is ${state}: ${message}`,
    details: { repair_id: id, entry, state },
  });
  const about = { repair_id: id, node_id: nodeId, hostname, site_id: siteId, mode, state, attempt };
  await recordDomainEvent(tx, {
    type: EVENT_OF[entry],
    subject: `repairs/${id}`,
    data: { ...about, repair_tenant: repairTenant, by: actor, message },
  });
  await applyMarks(tx, row, { by: actor, reason: message });
}

export interface NewCase {
  readonly node: Node;
  readonly mode: RepairCase["mode"];
  readonly issue: HealthIssue;
  readonly actor: string;
  readonly allocation: { readonly id: RepairCase["allocationId"]; readonly tenant: string } | null;
  readonly releaseOnFailure?: boolean;
  readonly details?: Readonly<Record<string, unknown>>;
}

/**
 * Opens a repair case of a locked node: a full repair begins as `reported`, an online repair as `requested`. Throws `conflict` if the node already
 * has an open repair case.
 */
export async function openCase(tx: Tx, given: NewCase): Promise<RepairCase> {
  const { node, mode, issue, actor, allocation, releaseOnFailure = false, details = {} } = given;
  const row = await insertCase(tx, {
    nodeId: node.id,
    siteId: node.siteId,
    hostname: node.hostname,
    mode,
    state: mode === "full" ? "reported" : "requested",
    ...redactedChange(issue),
    allocationId: allocation?.id ?? null,
    tenant: allocation?.tenant ?? null,
    openedBy: actor,
    releaseOnFailure,
  });
  if (row === null)
    throw new ApiError(
      "conflict",
      `Node ${node.hostname} has an open repair already. Continue that one, or close it first.`,
      {
        context: { node_id: node.id },
      },
    );
  await tell(tx, row, { entry: "opened", actor, message: issue.summary, details: { ...details, issue } });
  return row;
}
