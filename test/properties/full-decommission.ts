/** The scenario of a full decommission for the tests that exercise every stage. */
import { expect } from "vitest";
import { eq } from "../../hub/db/orm.ts";
import { hasLiveCertificate } from "../../hub/db/queries/node-certificates.ts";
import { hasTaskOf } from "../../hub/db/queries/task-reads.ts";
import { nodes, type Workflow } from "../../hub/db/schema/index.ts";
import { SECRET_PATHS } from "../../hub/secrets/port.ts";
import { CLEANING_TASKS } from "../../hub/workflows/decommission/cleaning-tasks.ts";
import type { NodeId, WorkflowId } from "../../shared/ids.ts";
import { STAGES_OF_MODE } from "../../shared/workflow-status.ts";
import { playDecommissionedAgent, type StartedDecommission } from "../support/decommission-world.ts";
import type { OnboardingRig } from "../support/onboarding-rig.ts";
import { hostInService, startFull } from "../support/release-world.ts";
import { isWaiting } from "./drive.ts";

/** A full decommission, and the system id of the machine of its node. */
type Subject = StartedDecommission & { readonly systemId?: string };

/** Starts a full decommission of a node that still has a secret from its first boot. */
async function startFullOf(rig: OnboardingRig, n: number): Promise<Subject> {
  const host = await hostInService(rig, n, `full-${n}`);
  await rig.services.secrets.write(SECRET_PATHS.userData(host.nodeId), { user_data: "left" });
  return { ...(await startFull(rig, host)), systemId: host.machine.systemId };
}

const nodeOf = async (rig: OnboardingRig, nodeId: NodeId) =>
  (await rig.test.database.db.select().from(nodes).where(eq(nodes.id, nodeId)))[0];
const hasCertificate = async (rig: OnboardingRig, nodeId: NodeId): Promise<boolean> => {
  const generation = (await nodeOf(rig, nodeId))?.generation ?? -1;
  return rig.test.database.inTx((tx) => hasLiveCertificate(tx, nodeId, generation));
};

async function expectNothingLeft(rig: OnboardingRig, { nodeId, systemId }: Subject): Promise<void> {
  expect(await nodeOf(rig, nodeId)).toMatchObject({ status: "deleted", operationId: null });
  expect(await hasCertificate(rig, nodeId)).toBe(false);
  expect(rig.secrets.entries.has(SECRET_PATHS.userData(nodeId))).toBe(false);
  expect(rig.maas.sim.region.findMachine(systemId ?? "")).toBeUndefined();
}

/**
 * Expects that a cancel leaves the node active, retired or deleted. A cancelled full decommission quarantines an active node whose cleaning had
 * begun. The node's certificate must be valid exactly as long as its machine is deployed.
 */
async function expectLeftInOrder(rig: OnboardingRig, { id, nodeId, systemId }: Subject): Promise<void> {
  const node = await nodeOf(rig, nodeId);
  const deployed = rig.maas.sim.region.findMachine(systemId ?? "")?.status === 6;
  const begun = await hasTaskOf(rig.test.database.db, { nodeId, workflowId: id }, CLEANING_TASKS);
  const inService = begun ? ["quarantined"] : ["active", "offline"];
  expect(deployed ? [...inService, "retired"] : ["retired", "deleted"]).toContain(node?.status);
  expect(node).toMatchObject({ operationId: null });
  expect(await hasCertificate(rig, nodeId), "the node's certificate is valid").toBe(deployed);
}

const STAGES: readonly string[] = STAGES_OF_MODE.full_decommission;
/**
 * The stages of a full decommission at which the suites try the faults of MAAS. The stage `choose_secrets` only reads the machine, and
 * `decommission-secrets.test.ts` covers MAAS's answers to it.
 */
const OWN: readonly string[] = ["cleanup_secrets", "remove_maas_record"];

/** Most stages of a full decommission have the same code as the stages of other modes. */
export const decommissioning = {
  kind: "full_decommission",
  name: "a full decommission",
  stages: STAGES,
  sameCode: STAGES.filter((stage) => !OWN.includes(stage)),
  outside: { commission: 1, deploy: 1, release: 1, abort: 0, powerOff: 1 },
  start: startFullOf,
  play: async (rig: OnboardingRig, id: WorkflowId, row: Workflow) =>
    isWaiting(row) ? playDecommissionedAgent(rig, id) : undefined,
  expectEnd: expectNothingLeft,
  expectCancelled: expectLeftInOrder,
};
