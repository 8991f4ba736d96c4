import { ApiError } from "../../../shared/api/errors.ts";
import { pause, resume } from "../../db/queries/batch-pauses.ts";
import { lockBatch, readBatchSite } from "../../db/queries/batches.ts";
import { lockSite } from "../../db/queries/maas-sites.ts";
import { tellRunners } from "../../db/queries/workflow-stops.ts";
import type { BatchRow } from "../../db/schema/index.ts";
import type { Tx } from "../../db/tx.ts";
import type { NamedBatch } from "./batch-verbs.ts";

interface By {
  readonly actor: string;
  readonly reason: string;
}

/**
 * Locks the site, as the hub does to start pending operations (admission), and then the batch. Once the request to pause a batch has its locks, the
 * hub starts no pending operation of the batch, even if it began to look for pending operations earlier.
 */
async function mustLock(tx: Tx, { kind, id }: NamedBatch): Promise<BatchRow> {
  const siteId = await readBatchSite(tx, kind, id);
  if (siteId !== null) await lockSite(tx, siteId);
  const batch = await lockBatch(tx, kind, id);
  if (batch === null) throw new ApiError("not_found", `There is no ${kind} batch ${id}.`);
  return batch;
}

/** Pauses a batch at a person's request: operations that have begun go on, and no other operation of the batch begins until a resume. */
export async function pauseBatch(tx: Tx, named: NamedBatch, { actor, reason }: By): Promise<void> {
  const batch = await mustLock(tx, named);
  if (batch.pausedAt !== null)
    throw new ApiError(
      "conflict",
      `The batch is paused already, by ${batch.pausedBy ?? "its failures"}: ${batch.pausedReason}. Resume it or cancel it.`,
    );
  if ((await pause(tx, batch, { by: actor, reason })) > 0) return;
  throw new ApiError("conflict", "No operation of the batch waits to begin, so a pause would change nothing.");
}

/** After a resume, only new failures count for the batch's `stop_after_failures`. */
export async function resumeBatch(tx: Tx, named: NamedBatch, { actor, reason }: By): Promise<void> {
  const batch = await mustLock(tx, named);
  if (batch.pausedAt === null)
    throw new ApiError(
      "conflict",
      "The batch is not paused, so there is nothing to resume. To continue its failed hosts, recover the batch.",
    );
  await resume(tx, batch, { by: actor, reason });
  await tellRunners(tx);
}
