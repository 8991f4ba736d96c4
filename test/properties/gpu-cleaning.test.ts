/** Tests soft resets of a node with GPUs whose agent reports different results about the GPUs. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eq } from "../../hub/db/orm.ts";
import { sanitizationRecords, type Task } from "../../hub/db/schema/index.ts";
import { workflowsOf } from "../../hub/workflows/registry.ts";
import type { WorkflowId } from "../../shared/ids.ts";
import { SanitizationRecord } from "../../shared/sanitization-record.ts";
import type { TaskResult } from "../../shared/tasks/index.ts";
import { resetOf, resultOnCleanHost } from "../support/agent-results.ts";
import { clean, playDecommissionedAgent } from "../support/decommission-world.ts";
import { type OnboardingRig, startOnboardingRig } from "../support/onboarding-rig.ts";
import { nextVerbOf } from "./converge.ts";
import { Driver } from "./drive.ts";

let rig: OnboardingRig;
let started = 0;
beforeAll(async () => {
  rig = await startOnboardingRig({ machines: 1 });
});
afterAll(() => rig?.close());

/** Makes a `Driver`, which runs a soft reset to its end with a simulated agent that reports `resultOf` for each task. */
const agent = (resultOf: (task: Task) => unknown) =>
  new Driver(rig.test, workflowsOf(rig.services), (id) => playDecommissionedAgent(rig, id, resultOf));
const start = () => clean(rig, "soft_reset", `gpu-${++started}`);
const recordOf = async (decommissionId: WorkflowId): Promise<SanitizationRecord> => {
  const [row] = await rig.test.database.db
    .select()
    .from(sanitizationRecords)
    .where(eq(sanitizationRecords.decommissionId, decommissionId));
  return SanitizationRecord.parse(JSON.parse(row?.text ?? "null"));
};

type Scrubbed = TaskResult<"node.gpu_scrub">;
const scrubbing = (result: Scrubbed) => (task: Task) =>
  task.type === "node.gpu_scrub" ? result : resultOnCleanHost(task);

describe("the reset of GPUs", () => {
  const whole = resetOf(8);
  const shader = (outcome: "unsupported" | "failed"): Scrubbed["steps"] => [
    { step: "gpu_cleaner_shader", target: "0000:00:00.0", outcome, message: "no shader", evidence: {} },
  ];
  it.each<[string, Scrubbed, string]>([
    ["names no step at all", { ...whole, steps: [] }, "0 of 8 GPUs were reset and found healthy"],
    ["names fewer GPUs than the node has", resetOf(7), "7 of 8 GPUs were reset and found healthy"],
    ["has a cleaner shader that failed", { ...whole, steps: [...whole.steps, ...shader("failed")] }, "no shader"],
    ["needs a reboot", { ...whole, needs: "reboot" }, "reboot it in MAAS, then resume"],
  ])("fails if its result %s, and continues by resume", async (_what, result, says) => {
    const { id } = await start();
    const failed = await agent(scrubbing(result)).drive(id);
    expect(failed).toMatchObject({
      stage: "scrub_gpu",
      failureCode: "cleaning_failed",
      evidence: { node_id: expect.any(String) },
    });
    expect(failed.failureMessage).toContain(says);
    expect(nextVerbOf(failed)).toBe("resume");
    const driver = agent(resultOnCleanHost);
    await driver.verb(id, "resume");
    expect((await driver.drive(id)).status, await driver.story(id)).toBe("completed");
  });

  it("succeeds without a cleaner shader, and the record says that the shader was not possible", async () => {
    const { id } = await start();
    const driver = agent(scrubbing({ ...whole, steps: [...whole.steps, ...shader("unsupported")] }));
    expect((await driver.drive(id)).status, await driver.story(id)).toBe("completed");
    const { verdict, not_covered } = await recordOf(id);
    expect(verdict).toBe("clean");
    expect(not_covered.join()).toContain(
      "The step gpu_cleaner_shader of node.gpu_scrub on 0000:00:00.0 was not possible",
    );
  });
});
