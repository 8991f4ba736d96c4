import { recordAudit } from "../db/queries/audit-logs.ts";
import { recordDomainEvent } from "../db/queries/domain-events.ts";
import { skipPositions } from "../db/queries/domain-events-list.ts";
import type { Tx } from "../db/tx.ts";
import type { Manifest } from "./manifest.ts";

/**
 * Makes an older database fit for hosts, programs and people that have gone on since the backup. `afterRestore` runs in the transaction that loads the
 * backup, so no hub ever sees the older database without these changes.
 */
export async function afterRestore(tx: Tx, { taken_at, hub_version }: Manifest): Promise<void> {
  const last = await skipPositions(tx);
  const message = `The database was restored from a backup of ${taken_at}. Everything that the hub recorded later is lost.`;
  await recordDomainEvent(tx, {
    type: "hub.database.restored",
    subject: "hub",
    data: { backup_taken_at: taken_at, last_sequence: last.toString(), message },
  });
  await recordAudit(tx, {
    actor: "restore",
    role: "admin",
    action: "restore",
    target: "database",
    reason: null,
    requestId: null,
    details: { backup_taken_at: taken_at, hub_version },
  });
}
