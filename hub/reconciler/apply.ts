import type { DriftAcknowledged, DriftDetails } from "../../shared/drift.ts";
import { recordDomainEvent } from "../db/queries/domain-events.ts";
import { writeDrift } from "../db/queries/node-machines.ts";
import { setNodeHost } from "../db/queries/nodes.ts";
import { wasQueuedWithin } from "../db/queries/task-reads.ts";
import { enqueueTask } from "../db/queries/tasks.ts";
import type { NodeMaasState } from "../db/schema/index.ts";
import type { Tx } from "../db/tx.ts";
import { hostAddresses } from "../maas/host-address.ts";
import type { MaasUser } from "../maas/same-owner.ts";
import { moveNode } from "../node/move-node.ts";
import { recordDriftEnd, recordDriftFound } from "./drift-history.ts";
import { isAcknowledged, stepOf } from "./drift-record.ts";
import type { FollowUp } from "./follow-up.ts";
import { driftStatusOf, type Judged } from "./judged.ts";
import type { Finding } from "./rules.ts";

/**
 * The largest numbers of actions that the reconciler takes in one pass. `reseeds` is the number of hosts that may still get a task that rewrites the
 * files of MAAS's hardware sync. `enablings` is the number of machines for which the reconciler may still repeat its request to MAAS to enable the
 * hardware sync.
 */
export interface SyncBudget {
  reseeds: number;
  enablings: number;
}
export interface ApplyOptions {
  /** The reason why the reconciler must not act on a node, in words; null if it may act. */
  readonly heldBack: string | null;
  readonly now: Date;
  readonly maasUser: MaasUser | null;
  readonly budget: SyncBudget;
}

/**
 * Writes a node's drift to the database and takes the actions that follow from it. Returns the calls to MAAS that the node's drift requires and that
 * the caller of `applyJudgement` still has to make.
 */
export async function applyJudgement(
  tx: Tx,
  judged: Judged,
  record: NodeMaasState,
  options: ApplyOptions,
): Promise<FollowUp[]> {
  const { row, judgement } = judged;
  const { node } = row;
  if (record.quarantinedAt !== null && node.status !== "quarantined")
    await writeDrift(tx, node.id, { quarantined: false });
  const heldBack = options.heldBack ?? (row.siteStatus === "active" ? null : SITE_DISABLED);
  const step = stepOf(judgement, driftStatusOf(row), record, heldBack, options.now);
  switch (step.kind) {
    case "forgotten":
      await writeDrift(tx, node.id, { driftAcknowledged: null });
      break;
    case "resolved":
      await resolve(tx, judged, record.driftDetails, null);
      break;
    case "resolved_beside":
      await resolve(tx, judged, record.driftDetails, record.driftAcknowledged);
      break;
    case "raised":
      if (record.driftDetected && record.driftDetails !== null)
        await recordDriftEnd(tx, node.id, record.driftDetails.rule, { how: "replaced", person: null });
      await writeDrift(tx, node.id, { driftDetected: true, driftDetails: step.details, resolved: false });
      await tell(tx, judged, step.details);
      break;
    case "updated":
      await writeDrift(tx, node.id, { driftDetails: step.details });
      break;
    case "same":
    case "acknowledged":
      break;
  }
  if (heldBack !== null) return [];
  if (judgement.heal) await heal(tx, judged);
  const followUps: FollowUp[] = [];
  for (const finding of judgement.findings)
    if (!isAcknowledged(finding, driftStatusOf(row), record.driftAcknowledged))
      followUps.push(...(await act(tx, judged, finding, options)));
  return followUps;
}

const SITE_DISABLED = "The site is disabled, so nothing new begins there. Enable the site to let this action happen.";

async function act(tx: Tx, judged: Judged, finding: Finding, options: ApplyOptions): Promise<FollowUp[]> {
  const { row } = judged;
  const { node } = row;
  switch (finding.action) {
    case "none":
      return [];
    case "quarantine":
      await quarantine(tx, judged, finding.message);
      return [];
    case "update_host": {
      const [address] = hostAddresses(row.machine?.interfaceAddresses ?? [], row.hostInterface);
      if (address !== undefined) await setNodeHost(tx, node.id, address);
      // Updating the stored address of the node's host ends the drift `host_changed`. If the node also has a more urgent drift than `host_changed`,
      // operators still see the more urgent drift.
      if (judged.judgement.findings[0] === finding) await resolve(tx, judged, null, null);
      return [];
    }
    case "reseed_hardware_sync":
      return reseed(tx, judged, options);
    case "release_machine":
      return [{ kind: "release_machine", nodeId: node.id, message: finding.message }];
  }
}

async function quarantine(tx: Tx, { row: { node } }: Judged, message: string): Promise<void> {
  const from = node.status;
  if (from !== "active" && from !== "offline") return;
  const { moved } = await moveNode(tx, node.id, { from, to: "quarantined", owner: "reconciler" }, message);
  if (moved) await writeDrift(tx, node.id, { quarantined: true });
}

async function heal(tx: Tx, { row: { node } }: Judged): Promise<void> {
  const message =
    "Its machine is deployed again and its agent has reported since, so the cause of the quarantine is gone";
  const { moved } = await moveNode(tx, node.id, { from: "quarantined", to: "active", owner: "reconciler" }, message);
  if (moved) await writeDrift(tx, node.id, { quarantined: false });
}

const RESEED_DEADLINE_SECONDS = 600;

/**
 * Orders the agent to repair the host's hardware sync, at most once in each interval of the hardware sync. Without a limit, a host whose hardware
 * sync cannot be repaired would get tasks for ever (lifecycle 9.1). While MAAS reports the host's hardware sync as disabled, the hub repeats its
 * request that MAAS enables the hardware sync. An earlier request to MAAS to enable the hardware sync may have had no effect, because a hub died or
 * MAAS refused the request.
 */
async function reseed(tx: Tx, { row }: Judged, { now, maasUser, budget }: ApplyOptions): Promise<FollowUp[]> {
  const { node, machine, policy } = row;
  if (machine === null || policy === null) return [];
  if (budget.reseeds === 0) return [];
  const interval = policy.hardwareSyncIntervalSeconds;
  const key = `hw-sync-reseed/drift/${machine.systemId}/`;
  const told = await wasQueuedWithin(tx, node.id, key, interval);
  if (!told) {
    await enqueueTask(tx, {
      nodeId: node.id,
      type: "node.hw_sync_reseed",
      input: {
        system_id: machine.systemId,
        maas_url: row.maasUrl,
        interval_seconds: interval,
        machine_token: null,
      },
      idempotencyKey: `${key}${now.toISOString()}`,
      deadlineSeconds: RESEED_DEADLINE_SECONDS,
    });
    budget.reseeds -= 1;
  }
  if (machine.enableHwSync !== false || maasUser === null) return [];
  if (told) {
    if (budget.enablings === 0) return [];
    budget.enablings -= 1;
  }
  return [{ kind: "enable_hardware_sync", nodeId: node.id, systemId: machine.systemId, maasUser: maasUser.name }];
}

async function resolve(
  tx: Tx,
  judged: Judged,
  before: DriftDetails | null,
  acknowledged: DriftAcknowledged | null,
): Promise<void> {
  const { node, state } = judged.row;
  await writeDrift(tx, node.id, { driftDetected: false, driftAcknowledged: acknowledged, resolved: true });
  const rule = before?.rule ?? judged.judgement.findings[0]?.rule;
  if (rule === undefined) return;
  await recordDriftEnd(tx, node.id, rule, { how: "healed", person: null });
  await recordDomainEvent(tx, {
    type: "node.drift.resolved",
    subject: `nodes/${node.id}`,
    data: { node_id: node.id, hostname: node.hostname, site_id: state.siteId, rule, how: "healed" },
  });
}

async function tell(tx: Tx, { row: { node, state } }: Judged, details: DriftDetails): Promise<void> {
  const { rule, severity, action, maas_status, expected, message, held_back } = details;
  await recordDriftFound(tx, node.id, details);
  await recordDomainEvent(tx, {
    type: "node.drift.detected",
    subject: `nodes/${node.id}`,
    data: {
      node_id: node.id,
      hostname: node.hostname,
      site_id: state.siteId,
      rule,
      severity,
      action,
      maas_status,
      expected,
      message,
      held_back,
    },
  });
}
