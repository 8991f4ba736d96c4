import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { eq } from "../../hub/db/orm.ts";
import { readWorkflow } from "../../hub/db/queries/workflows.ts";
import { nodeOnboardings, nodes } from "../../hub/db/schema/index.ts";
import { applyReadinessSignal } from "../../hub/node/conditions.ts";
import { startOnboarding } from "../../hub/workflows/onboarding/start-onboarding.ts";
import { workflowsOf } from "../../hub/workflows/registry.ts";
import { OnboardingCreate } from "../../shared/api/onboardings.ts";
import type { WorkflowId } from "../../shared/ids.ts";
import type { ConditionStatus } from "../../shared/readiness.ts";
import { bmcAddress } from "../fakes/maas/state/site.ts";
import { type OnboardingRig, SKU, startOnboardingRig } from "../support/onboarding-rig.ts";
import { nextVerbOf } from "./converge.ts";
import { Driver } from "./drive.ts";

/** Tests how an onboarding judges the agent's conditions about the first boot's parts (lifecycle 9). */
let rig: OnboardingRig;
let driver: Driver;
/** The simulated agent reports the conditions in `says` with each readiness signal. */
let says: Readonly<Record<string, ConditionStatus>>;
let observedAt: () => Date;
beforeEach(async () => {
  rig = await startOnboardingRig({ machines: 1 });
  says = {};
  observedAt = () => new Date();
  driver = new Driver(rig.test, workflowsOf(rig.services), async (id) => {
    await rig.playAgent(id);
    await speak(id);
  });
});
afterEach(() => rig?.close());

async function speak(id: WorkflowId): Promise<void> {
  const [row] = await rig.services.db
    .select({ node: nodes })
    .from(nodeOnboardings)
    .innerJoin(nodes, eq(nodes.id, nodeOnboardings.nodeId))
    .where(eq(nodeOnboardings.onboardingId, id));
  const told = Object.entries(says);
  if (row === undefined || told.length === 0) return;
  const at = observedAt().toISOString();
  const conditions = told.map(([type, status]) => ({
    type,
    status,
    reason: "Test",
    message: `${type} is ${status}`,
    observed_at: at,
  }));
  const signal = { signal_id: randomUUID(), generation: row.node.generation, boot_id: "boot", conditions };
  await rig.services.inTx((tx) => applyReadinessSignal(tx, row.node, "agent", signal));
}

async function begin(): Promise<WorkflowId> {
  const request = OnboardingCreate.parse({
    site_id: rig.siteId,
    profile_id: rig.profileId,
    sku_id: SKU,
    hostname: "host-1",
    ipmi_ip: bmcAddress(1),
  });
  const { onboarding_id } = await rig.services.inTx((tx) => startOnboarding(tx, { request, requestedBy: "ann" }));
  return onboarding_id;
}

describe("a first boot", () => {
  it("makes the node active when all its parts ended well", async () => {
    says = { "bootstrap.site": "True", "bootstrap.muster": "True" };
    expect(await driver.drive(await begin())).toMatchObject({ status: "completed" });
  });

  it.each([
    ["bootstrap.site", "site_bootstrap_failed"],
    ["bootstrap.muster", "host_bootstrap_failed"],
  ])(
    "whose part %s failed ends at once as %s, and continues by the recommended verb once the part is mended",
    async (type, code) => {
      says = { [type]: "False" };
      const id = await begin();
      const end = await driver.drive(id);
      expect(end).toMatchObject({
        status: "failed_manual_intervention",
        failureClass: "post_deploy_connectivity_failure",
        failureCode: code,
        stage: "wait_for_agent_enrollment",
      });
      expect(end.failureMessage).toContain(`${type} is False`);
      expect(nextVerbOf(end)).toBe("resume");
      says = { [type]: "True" };
      await driver.verb(id, "resume");
      expect(await driver.drive(id)).toMatchObject({ status: "completed" });
    },
  );

  it("whose part failed before a resume does not fail again until the agent reports the failure anew", async () => {
    says = { "bootstrap.muster": "False" };
    const id = await begin();
    const end = await driver.drive(id);
    observedAt = () => new Date(0);
    await driver.verb(id, "resume");
    for (let looks = 0; looks < 5; looks += 1) {
      await speak(id);
      await driver.step(id);
      expect(await readWorkflow(rig.services.db, id)).toMatchObject({ status: "running" });
    }
    observedAt = () => new Date();
    expect(await driver.drive(id)).toMatchObject({ status: end.status, failureCode: "host_bootstrap_failed" });
  });
});
