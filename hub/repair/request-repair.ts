import { ApiError } from "../../shared/api/errors.ts";
import { HOLDS, type Hold } from "../../shared/repair.ts";
import { lockUntilCommit } from "../db/advisory-locks.ts";
import { recordDomainEvent } from "../db/queries/domain-events.ts";
import { readSite } from "../db/queries/maas-sites.ts";
import { readBreakerState, tripBreaker } from "../db/queries/reconciler-breakers.ts";
import { countRequests, knownEvidence } from "../db/queries/repair-cases.ts";
import { countAttempts } from "../db/queries/repair-events.ts";
import type { RepairCase } from "../db/schema/index.ts";
import type { Tx } from "../db/tx.ts";
import { breakerTrips, moveLimit } from "../reconciler/breaker.ts";
import {
  ATTEMPT_WINDOW_DAYS,
  DEFAULT_ATTEMPT_LIMIT,
  evidenceDigest,
  evidenceOfIssue,
  heldByLoop,
} from "./loop-guards.ts";
import { moveCase, noteOnCase, type Told } from "./move-case.ts";

type Machine = Pick<RepairCase, "nodeId" | "siteId">;

/** Returns as `hold` what prevents another repair attempt at a machine for the given evidence of a fault; null if nothing does. */
export async function loopHold(
  tx: Tx,
  { nodeId, siteId }: Machine,
  evidence: string,
): Promise<{ readonly hold: Hold | null; readonly attempts: number; readonly limit: number }> {
  const site = siteId === null ? null : await readSite(tx, siteId);
  const limit = site?.repairAttemptLimit ?? DEFAULT_ATTEMPT_LIMIT;
  const attempts = await countAttempts(tx, nodeId, ATTEMPT_WINDOW_DAYS);
  const known = await knownEvidence(tx, nodeId, ATTEMPT_WINDOW_DAYS);
  return { hold: heldByLoop({ attempts, limit, evidence, known }), attempts, limit };
}

const ASKED = { heldBack: null, outcome: null, validatedAt: null, validatedBy: null, workedUntil: null } as const;

/**
 * Requests a repair because the site repairs automatically. If the limit of attempts, known evidence or the breaker holds the request back, the
 * repair case keeps its state, records the reason, and waits for a person (repair 3).
 */
export async function requestAutomatically(tx: Tx, row: RepairCase): Promise<RepairCase> {
  const evidence = evidenceOfIssue(row);
  const { hold: looped } = await loopHold(tx, row, evidence);
  const hold: Hold | null = looped ?? ((await breakerHolds(tx, row)) ? "breaker" : null);
  const by = { actor: "muster" } as const;
  if (hold !== null) {
    const message = `No automatic request: ${HOLDS[hold]}. A person decides, with request-repair or escalate-repair`;
    return noteOnCase(
      tx,
      row,
      { ...by, entry: "held_back", message, details: { held_back: hold } },
      { heldBack: hold },
    );
  }
  const told: Told = { ...by, entry: "requested", message: "The site repairs automatically" };
  return moveCase(tx, row, "request", told, { ...ASKED, evidence: [...row.evidence, evidence] });
}

/**
 * Requests a repair for a person. After a repair attempt at the machine, a repair request must name evidence that no earlier attempt knew, and the
 * number of attempts has a limit.
 */
export async function requestByPerson(
  tx: Tx,
  row: RepairCase,
  {
    actor,
    reason,
    evidence: text,
  }: { readonly actor: string; readonly reason: string; readonly evidence: string | undefined },
): Promise<RepairCase> {
  const evidence = text === undefined ? evidenceOfIssue(row) : evidenceDigest(text);
  const { hold, attempts, limit } = await loopHold(tx, row, evidence);
  if (hold !== null) throw loopError(row, hold, { attempts, limit });
  const details = text === undefined ? {} : { evidence: text };
  const told: Told = { entry: "requested", actor, message: reason, details };
  return moveCase(tx, row, "request", told, { ...ASKED, evidence: [...row.evidence, evidence] });
}

export function loopError(
  { nodeId, hostname }: Pick<RepairCase, "nodeId" | "hostname">,
  hold: Hold,
  { attempts, limit }: { readonly attempts: number; readonly limit: number },
): ApiError {
  const what = `Node ${hostname} was claimed for repair ${attempts} times in ${ATTEMPT_WINDOW_DAYS} days`;
  return new ApiError(
    "conflict",
    hold === "attempts_spent"
      ? `${what}, and the limit of its site is ${limit}. Escalate the repair, or have an admin raise repair_attempt_limit of the site.`
      : `${what}, and the request says nothing that an earlier attempt did not know. Name new evidence of the fault in the field evidence, or escalate the repair.`,
    { context: { node_id: nodeId } },
  );
}

/**
 * True if the fleet breaker holds an automatic repair request back, because too many machines of the site would be in repair at once (decision F1).
 * Without the fleet breaker, automatic repairs for a shared cause, such as a faulty switch or driver, would take the whole site out of service.
 */
async function breakerHolds(tx: Tx, { siteId, nodeId }: Machine): Promise<boolean> {
  if (siteId === null) return false;
  await lockUntilCommit(tx, "repair_breaker", siteId);
  const state = await readBreakerState(tx, siteId, "repair");
  if (state !== "closed") return state === "open";
  const { inService, underWay } = await countRequests(tx, siteId);
  const counts = { wouldMove: 1, moved: underWay.length, inService };
  if (!breakerTrips(counts)) return false;
  const limit = moveLimit(inService);
  if (!(await tripBreaker(tx, { siteId, kind: "repair", ...counts, moveLimit: limit, nodeIds: [nodeId] }))) return true;
  const message = `${underWay.length} machines of the site wait for repair or are in repair, and the limit is ${limit} of ${inService}. No report becomes an automatic request any more. Look for a common cause, e.g. a switch or a driver, then reset the breaker, with accept_drift if all machines are really broken.`;
  await recordDomainEvent(tx, {
    type: "site.breaker.tripped",
    subject: `maas-sites/${siteId}`,
    data: {
      ...{ site_id: siteId, kind: "repair", severity: "critical" },
      ...{ would_move: 1, moved: underWay.length, in_service: inService, message },
    },
  });
  return true;
}
