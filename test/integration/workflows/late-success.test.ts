import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { and, eq } from "../../../hub/db/orm.ts";
import { readOnboarding } from "../../../hub/db/queries/onboardings.ts";
import { auditLogs, maasSiteProfiles, nodes } from "../../../hub/db/schema/index.ts";
import type { Watcher } from "../../../hub/watcher/watcher.ts";
import { applyVerb } from "../../../hub/workflows/engine/apply-verb.ts";
import type { WorkflowRunner } from "../../../hub/workflows/engine/runner.ts";
import { adoptLateSuccesses } from "../../../hub/workflows/onboarding/late-success.ts";
import { workflowsOf } from "../../../hub/workflows/registry.ts";
import type { WorkflowId } from "../../../shared/ids.ts";
import type { WorkflowStatus } from "../../../shared/workflow-status.ts";
import { type OnboardingRig, startOnboardingRig } from "../../support/onboarding-rig.ts";
import { startAgents, startRigWatcher, startRunner } from "../../support/rig-hub.ts";
import { until } from "../../support/until.ts";

let rig: OnboardingRig;
let watcher: Watcher;
let runner: WorkflowRunner;
let agents: ReturnType<typeof startAgents>;
/** The onboardings whose agents have enrolled. These agents carry out their tasks from then on. */
const enrolled = new Set<WorkflowId>();
let boxes = 0;

beforeAll(async () => {
  rig = await startOnboardingRig({ machines: 4, speed: 5000 });
  watcher = startRigWatcher(rig);
  runner = startRunner(rig);
  agents = startAgents(rig, enrolled);
});
afterAll(async () => {
  await agents?.close();
  await runner?.close();
  await watcher?.close();
  await rig?.close();
});

const adopt = () => adoptLateSuccesses({ inTx: rig.services.inTx, workflows: workflowsOf(rig.services) });
const enroll = async (id: WorkflowId): Promise<void> => {
  await rig.playAgent(id);
  enrolled.add(id);
};
const reach = (id: WorkflowId, status: WorkflowStatus) =>
  until(`the onboarding to be ${status}`, async () => {
    const row = await readOnboarding(rig.services.db, id);
    return row?.status === status ? row : undefined;
  });

async function giveUp() {
  boxes += 1;
  const profileId = await rig.addProfile(`impatient-${boxes}`, { require_hw_sync: false });
  const { db } = rig.services;
  await db.update(maasSiteProfiles).set({ agentEnrollmentTimeoutSeconds: 1 }).where(eq(maasSiteProfiles.id, profileId));
  const started = await rig.start(boxes, profileId);
  const failed = await reach(started.id, "failed_manual_intervention");
  expect(failed).toMatchObject({ failure_class: "agent_enrollment_failure", error_code: "enrollment_timeout" });
  return { ...started, failed };
}

describe("an agent that enrolls after its onboarding has given up", () => {
  it("is adopted without a person, and the onboarding ends as reconciled", async () => {
    const { id, nodeId, failed } = await giveUp();
    expect(failed.next_verb).toBe("resume");
    expect(failed.error_details).toMatchObject({ last_maas_status: "Deployed", last_maas_power_state: "on" });
    expect(await adopt(), "no agent, nothing to adopt").toBe(0);
    await enroll(id);
    expect(await adopt()).toBe(1);
    await reach(id, "reconciled");
    const [node] = await rig.services.db.select().from(nodes).where(eq(nodes.id, nodeId));
    expect(node?.status).toBe("active");
    const audits = await rig.services.db
      .select()
      .from(auditLogs)
      .where(and(eq(auditLogs.target, `workflows/${id}`), eq(auditLogs.action, "workflow.adopt")));
    expect(audits).toMatchObject([{ actor: "muster", role: "system" }]);
  });

  it("is adopted once if several hubs look at the same moment", async () => {
    const { id } = await giveUp();
    await enroll(id);
    const taken = await Promise.all([adopt(), adopt(), adopt()]);
    expect(taken.reduce((sum, one) => sum + one, 0)).toBe(1);
    await reach(id, "reconciled");
  });

  it("is left alone while a person has frozen the onboarding, until that person adopts it", async () => {
    const { id } = await giveUp();
    const by = { workflowId: id, actor: "ann", role: "admin", reason: "hands off" };
    const verb = (which: "mark_manual_intervention" | "adopt") =>
      rig.services.inTx((tx) => applyVerb(tx, workflowsOf(rig.services), { ...by, verb: which }));
    await verb("mark_manual_intervention");
    await enroll(id);
    expect(await adopt()).toBe(0);
    await verb("adopt");
    await reach(id, "reconciled");
  });
});
