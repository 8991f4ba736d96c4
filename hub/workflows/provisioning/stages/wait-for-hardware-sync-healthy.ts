import type { Observation } from "../../engine/stage.ts";
import { WAIT_RETRY } from "../../services.ts";
import { type ProvisionContext, type ProvisionStage, profileTimeout } from "../context.ts";
import { hardwareSyncIsHealthy, type SyncFacts } from "../hardware-sync.ts";
import { judgeMachine, judgeSeen, waitForMachine, watchedMachine } from "../machine.ts";
import type { ProvisionState } from "../provision-state.ts";
import { enqueueReseed } from "../reseed.ts";

/** Until the host's first hardware sync, the hub queues the task that rewrites the files of hardware sync at most every `LEAST_RESEED_SECONDS`. */
const LEAST_RESEED_SECONDS = 300;

async function look(context: ProvisionContext): Promise<Exclude<Observation<ProvisionState>, { kind: "not_started" }>> {
  if (!context.profile.requireHwSync) return { kind: "skipped", message: "The profile does not require hardware sync" };
  const healthy = (facts: SyncFacts) => hardwareSyncIsHealthy(facts, baseline(context), context.now);
  const machine = await watchedMachine(
    context,
    (row) => healthy(row) || judgeSeen("wait_for_hardware_sync_healthy", context, row).kind !== "go_on",
  );
  if (machine === null) return waitAndReseed(context);
  const verdict = await judgeMachine("wait_for_hardware_sync_healthy", context, machine);
  if (verdict.kind === "failed") return verdict;
  if (!healthy(machine)) return waitAndReseed(context);
  const details = {
    last_sync: machine.lastSync?.toISOString() ?? null,
    next_sync: machine.nextSync?.toISOString() ?? null,
  };
  return { kind: "done", message: "MAAS has received a hardware sync from the deployed system", details };
}

const baseline = ({ state }: ProvisionContext): Date | null =>
  typeof state.last_sync_at_deploy === "string" ? new Date(state.last_sync_at_deploy) : null;

async function waitAndReseed(context: ProvisionContext) {
  const wait = waitForMachine(context, "MAAS to receive a hardware sync from the deployed system");
  const every = Math.max(LEAST_RESEED_SECONDS, context.profile.hardwareSyncIntervalSeconds);
  const due = Math.floor((context.now.getTime() - context.enteredAt.getTime()) / 1000 / every);
  const done = context.state.reseeds ?? 0;
  if (due <= done || context.now >= context.deadline) return wait;
  const taskId = await enqueueReseed(context, `health/${context.enteredAt.getTime()}/${due}`);
  return { ...wait, patch: { reseeds: due, reseed_task_id: taskId } };
}

export const waitForHardwareSyncHealthy: ProvisionStage<"wait_for_hardware_sync_healthy"> = {
  name: "wait_for_hardware_sync_healthy",
  title: "Wait until MAAS has received a hardware sync from the deployed system",
  reentry: { rule: "observe_first", observe: look },
  timeout: profileTimeout(
    "hardwareSyncHealthTimeoutSeconds",
    "hardware_sync_failure",
    "sync_unhealthy",
    "The first hardware sync",
  ),
  retry: WAIT_RETRY,
  run: look,
};
