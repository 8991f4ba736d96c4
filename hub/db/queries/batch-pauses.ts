import type { BatchKind } from "../../../shared/api/batches.ts";
import type { BatchId, SiteId } from "../../../shared/ids.ts";
import type { Tx } from "../tx.ts";
import { endPause, listFailedBatches, type Pause, setPause } from "./batches.ts";
import { recordDomainEvent } from "./domain-events.ts";
import { setBatchWait } from "./workflows.ts";

interface Paused {
  readonly id: BatchId;
  readonly kind: BatchKind;
  readonly siteId: SiteId;
}

const eventOf = ({ id, kind, siteId }: Paused) => ({
  subject: `${kind}-batches/${id}`,
  data: { batch_id: id, kind, site_id: siteId },
});

/**
 * Pauses the batch, so that no further operation of the batch is admitted, and each waiting operation says why it waits. `pause` returns the number
 * of operations that now wait for a person to resume the batch.
 */
export async function pause(tx: Tx, batch: Paused, { by, reason }: Pause): Promise<number> {
  await setPause(tx, batch.id, { by, reason });
  const who = by === null ? "" : ` by ${by}`;
  const waiting = await setBatchWait(tx, batch.id, `A person to resume the batch, which is paused${who}: ${reason}`);
  const { subject, data } = eventOf(batch);
  await recordDomainEvent(tx, { type: "batch.paused", subject, data: { ...data, by, reason } });
  return waiting;
}

export async function resume(tx: Tx, batch: Paused, { by, reason }: { by: string; reason: string }): Promise<void> {
  await endPause(tx, batch.id);
  await setBatchWait(tx, batch.id, null);
  const { subject, data } = eventOf(batch);
  await recordDomainEvent(tx, { type: "batch.resumed", subject, data: { ...data, by, reason } });
}

/**
 * Pauses each batch of the sites whose number of failures has reached its `stop_after_failures`. The caller of `stopFailedBatches` has locked the
 * rows of the sites.
 */
export async function stopFailedBatches(tx: Tx, siteIds: readonly SiteId[]): Promise<void> {
  for (const { failures, ...batch } of await listFailedBatches(tx, siteIds)) {
    const told = failures === 1 ? "1 host of the batch has failed" : `${failures} hosts of the batch have failed`;
    await pause(tx, batch, { by: null, reason: `${told}, so no further host begins` });
  }
}
