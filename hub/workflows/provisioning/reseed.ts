import type { TaskId } from "../../../shared/ids.ts";
import { enqueueTask } from "../../db/queries/tasks.ts";
import { inFencedTx } from "../services.ts";
import { type ProvisionContext, provisioningOf, systemIdOf } from "./context.ts";

/** How long the agent has for one reseed before the task is given up. */
const RESEED_DEADLINE_SECONDS = 600;

/**
 * Queues the agent's task that writes MAAS's hardware-sync files and starts one sync (decision M3). The same `occasion` is the same task,
 * so running the stage again queues nothing twice. The token is read at dispatch and never lies in the row.
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
