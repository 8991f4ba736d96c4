import type { TaskId } from "../../../shared/ids.ts";
import { enqueueTask } from "../../db/queries/tasks.ts";
import { inFencedTx } from "../services.ts";
import { type ProvisionContext, provisioningOf, systemIdOf } from "./context.ts";

/** After `RESEED_DEADLINE_SECONDS` the hub gives up the task `node.hw_sync_reseed`, by which the agent rewrites the files of hardware sync. */
const RESEED_DEADLINE_SECONDS = 600;

/**
 * Queues the agent's task `node.hw_sync_reseed`, which rewrites the files of hardware sync and starts one sync (decision M3). A second call of
 * `enqueueReseed` with the same `occasion` queues no second task. The hub reads the machine's MAAS token when it delivers the task
 * `node.hw_sync_reseed`, and never stores the token in the task's row.
 */
export async function enqueueReseed(context: ProvisionContext, occasion: string): Promise<TaskId> {
  const { nodeId, generation } = provisioningOf(context);
  const { task } = await inFencedTx(context, (tx) =>
    enqueueTask(tx, {
      nodeId,
      workflowId: context.workflowId,
      type: "node.hw_sync_reseed",
      input: {
        system_id: systemIdOf(context),
        maas_url: context.site.apiBaseUrl,
        interval_seconds: context.profile.hardwareSyncIntervalSeconds,
        machine_token: null,
      },
      idempotencyKey: `hw-sync-reseed/${context.workflowId}/${generation}/${occasion}`,
      deadlineSeconds: RESEED_DEADLINE_SECONDS,
    }),
  );
  return task.id;
}
