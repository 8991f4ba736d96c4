import { RESTORED } from "../../shared/health-report.ts";
import { recordAudit } from "../db/queries/audit-logs.ts";
import { recordRestore } from "../db/queries/database-restores.ts";
import { recordDomainEvent } from "../db/queries/domain-events.ts";
import { skipPositions } from "../db/queries/domain-events-list.ts";
import { listLivingNodeIds } from "../db/queries/nodes.ts";
import { failRunningPowerActions } from "../db/queries/power-actions.ts";
import { cancelQueuedWork, extendHeldTasks } from "../db/queries/tasks.ts";
import { stopDestructive } from "../db/queries/workflow-stops.ts";
import type { Tx } from "../db/tx.ts";
import { setHealthOverride } from "../node/health-override.ts";
import type { Manifest } from "./manifest.ts";

export interface AfterRestore {
  /** False if nodes need no check by a person after the restore, because the operator knows that no host got or lost a tenant after the backup. */
  readonly holds: boolean;
}

/** The numbers of nodes and operations that wait for a person after a restore. */
export interface Held {
  readonly nodes: number;
  readonly operations: number;
}

/**
 * Adapts the older database of a backup to hosts, programs and people, which have gone on with their work since the backup. `afterRestore` runs in
 * the transaction that loads the backup, so no hub ever sees the restored database without the changes of `afterRestore`. `afterRestore` returns what
 * it holds back.
 */
export async function afterRestore(
  tx: Tx,
  { taken_at, hub_version }: Manifest,
  { holds }: AfterRestore,
): Promise<Held> {
  await recordRestore(tx, new Date(taken_at));
  const last = await skipPositions(tx);
  await extendHeldTasks(tx);
  const message = `The database was restored from a backup of ${taken_at}. Everything that the hub recorded later is lost.`;
  await recordDomainEvent(tx, {
    type: "hub.database.restored",
    subject: "hub",
    data: { backup_taken_at: taken_at, last_sequence: last.toString(), message },
  });
  const held = holds ? await holdBack(tx, taken_at) : { nodes: 0, operations: 0 };
  await recordAudit(tx, {
    actor: "restore",
    role: "admin",
    action: "restore",
    target: "database",
    reason: null,
    requestId: null,
    details: {
      backup_taken_at: taken_at,
      hub_version,
      nodes_held_back: held.nodes,
      operations_stopped: held.operations,
    },
  });
  return held;
}

/**
 * Between the backup and the restore, a host may have got a tenant, or another tenant. Until a person has looked at a host after a restore, the host
 * gets no new tenant, no operation cleans or releases the host, and no task that waits since the backup changes the host or its accounts.
 */
async function holdBack(tx: Tx, takenAt: string): Promise<Held> {
  const since = `The database was restored from a backup of ${takenAt}, and does not know who got this host later`;
  const reason = `${since}. Look at the host, then remove this health override`;
  const held = await listLivingNodeIds(tx);
  for (const nodeId of held)
    await setHealthOverride(tx, { nodeId, source: RESTORED, target: null, reason, setBy: "restore" });
  await cancelQueuedWork(tx);
  await failRunningPowerActions(tx, `${since}. Look at the host, then ask again`);
  const operations = await stopDestructive(tx, `${since}. Look at the host, then resume or cancel the operation`);
  return { nodes: held.length, operations };
}
