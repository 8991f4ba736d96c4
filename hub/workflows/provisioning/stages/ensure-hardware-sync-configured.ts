import { type Failure, failure } from "../../../../shared/failures.ts";
import type { TaskId } from "../../../../shared/ids.ts";
import { readTask } from "../../../db/queries/task-reads.ts";
import { waitKey } from "../../../db/queries/workflow-wakes.ts";
import { SECRET_PATHS } from "../../../secrets/port.ts";
import type { Done, Observation, Outcome, Wait } from "../../engine/stage.ts";
import { UPSTREAM_RETRY } from "../../services.ts";
import { absenceHint, agentAbsent } from "../agent-absence.ts";
import { agentSession, waitForAgent } from "../agent-presence.ts";
import { maasOf, type ProvisionContext, type ProvisionStage, provisioningOf, systemIdOf } from "../context.ts";
import { freshMachine, judgeMachine, machineTaken } from "../machine.ts";
import type { ProvisionState } from "../provision-state.ts";
import { enqueueReseed } from "../reseed.ts";

const TOKEN_LOOK_SECONDS = 10;
const TASK_LOOK_SECONDS = 15;

/**
 * Configures hardware sync, which every managed node must have (lifecycle 9.1). The agent configures hardware sync after its enrollment, because MAAS
 * issues the machine's token only at the deploy (decision M3).
 */
export const ensureHardwareSyncConfigured: ProvisionStage<"ensure_hardware_sync_configured"> = {
  name: "ensure_hardware_sync_configured",
  title: "Have the agent write MAAS's hardware-sync credentials and units",
  reentry: { rule: "observe_first", observe: seeded },
  timeout: { seconds: (context) => context.profile.hardwareSyncSeedTimeoutSeconds, failure: timeoutFailure },
  retry: UPSTREAM_RETRY,
  async run(context) {
    if (!context.profile.requireHwSync)
      return { kind: "skipped", message: "The profile does not require hardware sync" };
    if ((await agentSession(context)) === null) {
      const taken = await machineTaken("ensure_hardware_sync_configured", context);
      if (taken !== null) return taken;
      const wait = await waitForAgent(context);
      return { ...wait, patch: { ...wait.patch, hw_sync_waits_for: "agent" } };
    }
    const clock = await wrongClock(context);
    if (clock !== null) return clock;
    // When the agent is connected, the host's first boot is over, so the hub deletes the stored user-data with its token.
    await context.services.secrets.remove(SECRET_PATHS.userData(provisioningOf(context).nodeId));
    const waiting = await assertMaasSide(context);
    return waiting ?? seed(context);
  },
};

/** MAAS refuses a request whose signature is five minutes off, so a host with a wrong clock could not report its hardware. */
async function wrongClock(context: ProvisionContext): Promise<Wait<ProvisionState> | null> {
  const hint = await absenceHint(context);
  if (hint === null) return null;
  return {
    kind: "wait",
    reason: `The agent to become healthy; ${hint}`.slice(0, 300),
    seconds: TASK_LOOK_SECONDS,
    on: waitKey.node(provisioningOf(context).nodeId),
    patch: { hw_sync_waits_for: "agent" },
  };
}

/**
 * Enables hardware sync for the machine in MAAS, and waits for MAAS to issue the machine's token. `assertMaasSide` returns null if MAAS has issued
 * the machine's token.
 */
async function assertMaasSide(context: ProvisionContext): Promise<Outcome<ProvisionState> | null> {
  const machine = await freshMachine(context);
  const verdict = await judgeMachine("ensure_hardware_sync_configured", context, machine);
  if (verdict.kind === "failed") return verdict;
  const maas = await maasOf(context);
  if (machine.enableHwSync === false) await maas.updateMachine(systemIdOf(context), { enableHwSync: true });
  if ((await maas.getMachineToken(systemIdOf(context))) !== null) return null;
  const reason = "MAAS to issue the machine's token";
  return { kind: "wait", reason, seconds: TOKEN_LOOK_SECONDS, patch: { hw_sync_waits_for: "token" } };
}

const done = (taskId: TaskId): Done<ProvisionState> => ({
  kind: "done",
  message: "The agent has set up hardware sync",
  patch: { reseed_task_id: taskId },
});

/**
 * The stage `ensure_hardware_sync_configured` is done if the agent's task `node.hw_sync_reseed` succeeded after the workflow entered the stage, even
 * after the deadline.
 */
async function seeded(context: ProvisionContext): Promise<Observation<ProvisionState>> {
  const { reseed_task_id: taskId } = context.state;
  const task = typeof taskId === "string" ? await readTask(context.services.db, taskId) : null;
  const fresh = task?.state === "succeeded" && task.finishedAt !== null && task.finishedAt >= context.enteredAt;
  return task !== null && fresh ? done(task.id) : { kind: "not_started" };
}

/** At each entry into the stage `ensure_hardware_sync_configured`, the hub queues a new task that rewrites the files of hardware sync. */
async function seed(context: ProvisionContext): Promise<Outcome<ProvisionState>> {
  const taskId = await enqueueReseed(context, `seed/${context.enteredAt.getTime()}/${context.attempt}`);
  const task = await readTask(context.services.db, taskId);
  switch (task?.state) {
    case "succeeded":
      return done(taskId);
    case "failed":
    case "cancelled":
    case "expired": {
      const message = `The agent of ${context.host.hostname} could not set up hardware sync: ${task.errorMessage ?? task.state}. Read the agent's log on the host, then resume.`;
      const evidence = { task_id: taskId, task_state: task.state, task_error: task.errorCode };
      return { kind: "failed", failure: failure("hardware_sync_failure", "reseed_failed", message, evidence) };
    }
    default:
      return {
        kind: "wait",
        reason: "The agent to set up hardware sync",
        seconds: TASK_LOOK_SECONDS,
        on: waitKey.task(taskId),
        patch: { hw_sync_waits_for: "task", reseed_task_id: taskId },
      };
  }
}

/**
 * After the timeout of the stage `ensure_hardware_sync_configured`, the host stays deployed, so that a person can find out what is missing (lifecycle
 * 4.6).
 */
function timeoutFailure(context: ProvisionContext): Failure | Promise<Failure> {
  const { state, host, profile } = context;
  const evidence = {
    waited_for: state.hw_sync_waits_for ?? "agent",
    timeout_seconds: profile.hardwareSyncSeedTimeoutSeconds,
    maas_system_id: state.maas_system_id ?? null,
    last_maas_ips: state.deploy_ip_addresses ?? [],
    task_id: state.reseed_task_id ?? null,
  };
  switch (state.hw_sync_waits_for) {
    case "token": {
      const message = `MAAS issued no token for ${host.hostname} in time. Look at the machine in MAAS, then resume.`;
      return failure("hardware_sync_failure", "token_not_emitted", message, evidence);
    }
    case "task": {
      const message = `The agent of ${host.hostname} did not set up hardware sync in time. Read the agent's log on the host, then resume.`;
      return failure("hardware_sync_failure", "reseed_failed", message, evidence);
    }
    default:
      return agentAbsent(context, {
        evidence,
        otherwise: (message, more) =>
          failure("post_deploy_connectivity_failure", "agent_not_connected", `${message} Then resume.`, more),
      });
  }
}
