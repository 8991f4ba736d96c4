import { randomUUID } from "node:crypto";
import { and, eq, getTableColumns, inArray, ne, sql } from "../../hub/db/orm.ts";
import { keepInventory } from "../../hub/db/queries/node-inventories.ts";
import { waitKey, wakeWorkflows } from "../../hub/db/queries/workflow-wakes.ts";
import { agentSessions, nodeDecommissions, nodes, type Task, tasks } from "../../hub/db/schema/index.ts";
import { enterDraining, retire } from "../../hub/node/lifecycle.ts";
import { startDecommission } from "../../hub/workflows/decommission/start-decommission.ts";
import type { ProfileCreate } from "../../shared/api/profiles.ts";
import type { NodeId, WorkflowId } from "../../shared/ids.ts";
import type { DecommissionMode } from "../../shared/workflow-status.ts";
import { resultOnCleanHost } from "./agent-results.ts";
import { onboardedWith, writeBaseline } from "./allocatable-node.ts";
import { checkedHardware } from "./checked-hardware.ts";
import { nodeInService } from "./node-in-service.ts";
import { NVIDIA_SKU, type OnboardingRig } from "./onboarding-rig.ts";
import { inventoryOf } from "./running-host.ts";
import { certify } from "./signing-agent.ts";

/** The modes of a decommission that take a node out of service with the agent's help. */
export type AgentMode = Extract<DecommissionMode, "drain" | "remove">;

export interface StartedDecommission {
  readonly id: WorkflowId;
  readonly nodeId: NodeId;
  readonly hostname: string;
}

export async function decommission(
  rig: OnboardingRig,
  mode: AgentMode,
  hostname: string,
): Promise<StartedDecommission> {
  const nodeId = await nodeInService(rig, hostname);
  const { inTx } = rig.test.database;
  if (mode === "remove")
    await inTx(async (tx) => {
      await enterDraining(tx, nodeId, randomUUID(), "drained before");
      await retire(tx, nodeId, "drained before");
    });
  const knobs = { reason: "old", agent_wait_seconds: 900 };
  const request =
    mode === "drain"
      ? ({ mode, ...knobs, deadline_seconds: 60, force: false } as const)
      : ({ mode, ...knobs } as const);
  const created = await inTx((tx) => startDecommission(tx, nodeId, request, "ann"));
  return { id: created.decommission_id, nodeId, hostname };
}

/** Writes the baseline of an active node, as the agent of a clean host reports it, and a certificate for the agent's signatures. */
export async function recordBaseline(rig: OnboardingRig, nodeId: NodeId): Promise<void> {
  await rig.services.inTx(async (tx) => {
    await certify(tx, nodeId);
    await writeBaseline(tx, nodeId);
  });
}

export async function requireMemory(
  rig: OnboardingRig,
  nodeId: NodeId,
  hostname: string,
  knobs: Partial<ProfileCreate>,
): Promise<void> {
  const profileId = await rig.addProfile(hostname, knobs);
  await rig.services.inTx(async (tx) => {
    await tx.update(nodes).set({ sku: NVIDIA_SKU }).where(eq(nodes.id, nodeId));
    await onboardedWith(tx, { nodeId, siteId: rig.siteId, profileId, hostname });
  });
}
const EIGHT = Array.from({ length: 8 }, (_, number) => `0000:0${number}:00.0`);
/** Keeps an inventory of the node's host that names a GPU with `bytes` of memory at each address, as the host reported before a tenant's use. */
export async function knowGpuMemory(
  rig: OnboardingRig,
  nodeId: NodeId,
  bytes: number,
  addresses: readonly string[] = EIGHT,
): Promise<void> {
  const gpus = addresses.map((bus) => ({ vendor: "NVIDIA Corporation", model: "H100", bus, memory_bytes: bytes }));
  await keepInventory(rig.test.database.db, nodeId, { ...inventoryOf({ bootId: "boot", uuid: "", macs: [] }), gpus });
}

type GpuLevel = ProfileCreate["gpu_claim_level"];

/** Starts the cleaning of an active node. With `level`, the node has NVIDIA GPUs and a profile whose `gpu_claim_level` is `level`. */
export async function clean(
  rig: OnboardingRig,
  mode: "soft_reset" | "storage_cleanup",
  hostname: string,
  level: GpuLevel | null = null,
  knobs: Partial<ProfileCreate> = {},
): Promise<StartedDecommission> {
  const nodeId = await nodeInService(rig, hostname);
  await recordBaseline(rig, nodeId);
  if (level !== null) await requireMemory(rig, nodeId, hostname, { ...knobs, gpu_claim_level: level });
  const asked = { reason: "next tenant", agent_wait_seconds: 900 };
  const request =
    mode === "soft_reset"
      ? ({ mode, ...asked, storage_cleanup: "all" } as const)
      : ({ mode, ...asked, scope: "all" } as const);
  const created = await rig.test.database.inTx((tx) => startDecommission(tx, nodeId, request, "ann"));
  return { id: created.decommission_id, nodeId, hostname };
}

/**
 * Simulates the connected agent of a decommission's node, for which each task of the agent succeeds. `resultOf` returns what the agent reports for a
 * task, or a promise of the report. Only `playAgentOn` carries out `node.hw_sync_reseed`, because the machine in MAAS must get the hardware sync that
 * the task starts. A stage that waits for this sync would otherwise wait until its deadline.
 */
export async function playDecommissionedAgent(
  rig: OnboardingRig,
  id: WorkflowId,
  resultOf: (task: Task) => unknown = resultOnCleanHost,
): Promise<void> {
  const { db, inTx } = rig.test.database;
  // Tests call `playDecommissionedAgent` between all runs of a stage, so one small query says what the agent has to do.
  const due = await db
    .select(getTableColumns(tasks))
    .from(nodeDecommissions)
    .innerJoin(tasks, eq(tasks.nodeId, nodeDecommissions.nodeId))
    .innerJoin(agentSessions, and(eq(agentSessions.nodeId, tasks.nodeId), eq(agentSessions.state, "open")))
    .where(
      and(
        eq(nodeDecommissions.decommissionId, id),
        ne(tasks.type, "node.hw_sync_reseed"),
        inArray(tasks.state, ["queued", "offered"]),
      ),
    );
  if (due.length === 0) return;
  const ended: { readonly task: Task; readonly result: unknown }[] = [];
  for (const task of due) {
    const result =
      (await resultOf(task)) ?? (task.type === "node.check_hardware" ? await checkedHardware(db, task.nodeId) : null);
    ended.push({ task, result });
  }
  await inTx(async (tx) => {
    for (const { task, result } of ended)
      await tx
        .update(tasks)
        .set({
          state: "succeeded",
          attempts: sql`${tasks.attempts} + 1`,
          finishedAt: sql`clock_timestamp()`,
          leaseUntil: null,
          epoch: task.epoch + 1,
          result,
        })
        .where(and(eq(tasks.id, task.id), inArray(tasks.state, ["queued", "offered"])));
    await wakeWorkflows(
      tx,
      due.map((task) => waitKey.task(task.id)),
    );
  });
}
