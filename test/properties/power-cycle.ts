/** The scenario of a soft reset with a power cycle, for the tests that exercise every stage. */
import { expect } from "vitest";
import { eq } from "../../hub/db/orm.ts";
import { hasTaskOf } from "../../hub/db/queries/task-reads.ts";
import { nodes, type Workflow } from "../../hub/db/schema/index.ts";
import { CLEANING_TASKS } from "../../hub/workflows/decommission/cleaning-tasks.ts";
import type { WorkflowId } from "../../shared/ids.ts";
import type { StartedDecommission } from "../support/decommission-world.ts";
import type { OnboardingRig } from "../support/onboarding-rig.ts";
import { type PowerCycledHost, SickHost, startSoftResetOnMaas } from "../support/power-cycled-host.ts";

type Subject = StartedDecommission & { readonly systemId?: string };

const HOSTS = new Map<WorkflowId, { readonly host: PowerCycledHost; readonly sick: SickHost }>();

async function startSick(rig: OnboardingRig, n: number): Promise<Subject> {
  const host = await startSoftResetOnMaas(rig, n, { gpu_reset_up_to: "power_cycle" });
  HOSTS.set(host.id, { host, sick: new SickHost(rig, host, { wellAfterBoots: 1 }) });
  return { id: host.id, nodeId: host.nodeId, hostname: host.hostname, systemId: host.machine.systemId };
}

/** Expects that the machine is on, because a machine that is off has no agent. */
function expectOn({ id }: Subject): void {
  expect(HOSTS.get(id)?.host.box.power).toBe("on");
}

const nodeOf = async (rig: OnboardingRig, { nodeId }: Subject) =>
  (await rig.test.database.db.select().from(nodes).where(eq(nodes.id, nodeId)))[0];

export const powerCycling = {
  kind: "soft_reset",
  name: "a soft reset with a power cycle",
  stages: ["power_cycle_maas_node"],
  outside: { commission: 1, deploy: 1, release: 0, abort: 0, powerOff: 1 },
  cannotReplaceMachine: true,
  needsDeployedMachine: true,
  start: startSick,
  play: async (_rig: OnboardingRig, id: WorkflowId, row: Workflow) => HOSTS.get(id)?.sick.play(id, row),
  expectEnd: async (rig: OnboardingRig, subject: Subject) => {
    expect(await nodeOf(rig, subject)).toMatchObject({ status: "active", operationId: null, cordonReason: null });
    expectOn(subject);
  },
  expectCancelled: async (rig: OnboardingRig, subject: Subject) => {
    const begun = await hasTaskOf(
      rig.test.database.db,
      { nodeId: subject.nodeId, workflowId: subject.id },
      CLEANING_TASKS,
    );
    const node = await nodeOf(rig, subject);
    expect(begun ? ["quarantined"] : ["active", "offline"]).toContain(node?.status);
    expect(node).toMatchObject({ operationId: null, cordonReason: null });
  },
} as const;
