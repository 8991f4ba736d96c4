import { and, eq, inArray, sql } from "../../hub/db/orm.ts";
import { waitKey, wakeWorkflows } from "../../hub/db/queries/workflow-wakes.ts";
import { agentSessions, nodes, type Task, tasks, type Workflow, workflows } from "../../hub/db/schema/index.ts";
import { startDecommission } from "../../hub/workflows/decommission/start-decommission.ts";
import type { ProfileCreate } from "../../shared/api/profiles.ts";
import type { WorkflowId } from "../../shared/ids.ts";
import { resetOf, resultOnCleanHost } from "./agent-results.ts";
import { playDecommissionedAgent, recordBaseline, type StartedDecommission } from "./decommission-world.ts";
import { setConnected } from "./node-in-service.ts";
import { NVIDIA_SKU, type OnboardingRig } from "./onboarding-rig.ts";
import { type DeployedHost, hostInService } from "./release-world.ts";

/** The number of boots after which the GPUs of a host are well; 0 for GPUs that need no power cycle. */
export interface SickGpus {
  readonly wellAfterBoots: number;
  /** True if the driver of the sick GPUs hangs, so that the agent cannot even begin to reset them. */
  readonly isWedged?: boolean;
  readonly staysDown?: boolean;
}

export interface PowerCycledHost extends StartedDecommission, DeployedHost {}

/** Starts the soft reset of a host whose machine is deployed in the simulated MAAS region. */
export async function startSoftResetOnMaas(
  rig: OnboardingRig,
  n: number,
  knobs: Partial<ProfileCreate>,
): Promise<PowerCycledHost> {
  const hostname = `cycled-${n}`;
  const profileId = await rig.addProfile(hostname, knobs);
  const host = await hostInService(rig, n, hostname, profileId);
  await rig.test.database.db.update(nodes).set({ sku: NVIDIA_SKU }).where(eq(nodes.id, host.nodeId));
  await recordBaseline(rig, host.nodeId);
  const request = { mode: "soft_reset", reason: "next tenant", agent_wait_seconds: 900 } as const;
  const created = await rig.test.database.inTx((tx) =>
    startDecommission(tx, host.nodeId, { ...request, storage_cleanup: "all" }, "ann"),
  );
  return { id: created.decommission_id, ...host };
}

/** Simulates a host with sick GPUs, whose agent connects after each boot of the machine. */
export class SickHost {
  boots = 0;
  readonly #rig: OnboardingRig;
  readonly #host: DeployedHost;
  #gpus: SickGpus;
  #wasOff = false;

  constructor(rig: OnboardingRig, host: DeployedHost, gpus: SickGpus) {
    this.#rig = rig;
    this.#host = host;
    this.#gpus = gpus;
  }

  get #bootId(): string {
    return this.boots === 0 ? "boot" : `boot-${this.boots}`;
  }

  become(gpus: SickGpus): void {
    this.#gpus = gpus;
  }

  /** Simulates the host between two runs of a stage. The argument `row` is the workflow's row, as it was read just before. */
  async play(id: WorkflowId, row: Workflow): Promise<void> {
    await this.#playPower();
    if (isOff(row)) await passOffTime(this.#rig, id);
    // The agent has no task before a stage waits for the agent.
    if (row.waitReason === null) return;
    if (this.#gpus.isWedged === true && this.boots < this.#gpus.wellAfterBoots) await this.#wedge(id);
    await playDecommissionedAgent(this.#rig, id, (task) => this.#resultOf(task));
  }

  async #playPower(): Promise<void> {
    const { nodeId, box } = this.#host;
    if (box.power === "off") {
      if (!this.#wasOff) await setConnected(this.#rig, nodeId, false);
      this.#wasOff = true;
      return;
    }
    if (!this.#wasOff || this.#gpus.staysDown === true) return;
    this.#wasOff = false;
    this.boots += 1;
    await setConnected(this.#rig, nodeId, true);
    await this.#rig.test.database.db
      .update(agentSessions)
      .set({ bootId: this.#bootId })
      .where(eq(agentSessions.nodeId, nodeId));
  }

  #resultOf(task: Task): unknown {
    if (task.type !== "node.gpu_scrub") return resultOnCleanHost(task);
    const isWell = this.boots >= this.#gpus.wellAfterBoots;
    return { ...resetOf(8), needs: isWell ? "none" : "power_cycle", boot_id: this.#bootId };
  }

  /** Ends the open reset of the GPUs as the agent does if a program hangs in the GPU driver. */
  async #wedge(id: WorkflowId): Promise<void> {
    const { db, inTx } = this.#rig.test.database;
    const ended = await db
      .update(tasks)
      .set({
        state: "failed",
        attempts: sql`${tasks.attempts} + 1`,
        finishedAt: sql`clock_timestamp()`,
        leaseUntil: null,
        errorCode: "driver_wedged",
        errorMessage: "nvidia-smi does not end",
      })
      .where(
        and(eq(tasks.workflowId, id), eq(tasks.type, "node.gpu_scrub"), inArray(tasks.state, ["queued", "offered"])),
      )
      .returning({ id: tasks.id });
    await inTx((tx) =>
      wakeWorkflows(
        tx,
        ended.map((task) => waitKey.task(task.id)),
      ),
    );
  }
}

const isOff = ({ state }: Workflow): boolean =>
  typeof (state as { gpu_power_cycle?: { off_since?: unknown } | null }).gpu_power_cycle?.off_since === "string";

/** Moves the begin of a power cycle's off time into the past, because the tests do not wait. */
async function passOffTime(rig: OnboardingRig, id: WorkflowId): Promise<void> {
  await rig.test.database.db
    .update(workflows)
    .set({
      state: sql`jsonb_set(${workflows.state}, '{gpu_power_cycle,off_since}', '"2026-01-01T00:00:00.000Z"')`,
    })
    .where(eq(workflows.id, id));
}
