import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { gpuChallenge } from "../../agent/tasks/gpu-challenge.ts";
import { gpuFill } from "../../agent/tasks/gpu-fill.ts";
import { eq, sql } from "../../hub/db/orm.ts";
import { nodes, sanitizationRecords, type Task, tasks, workflows } from "../../hub/db/schema/index.ts";
import { workflowsOf } from "../../hub/workflows/registry.ts";
import { MOST_GPUS, SAMPLE_BLOCK_BYTES } from "../../shared/gpu-memory.ts";
import type { TaskId, WorkflowId } from "../../shared/ids.ts";
import { SanitizationRecord } from "../../shared/sanitization-record.ts";
import { TASKS, type TaskInput, type TaskResult } from "../../shared/tasks/index.ts";
import { GpuHost, gpuUuid, hasCompiler, PCI_ADDRESS } from "../fakes/gpu/gpu-host.ts";
import { resetOf, resultOnCleanHost } from "../support/agent-results.ts";
import { clean, knowGpuMemory, playDecommissionedAgent } from "../support/decommission-world.ts";
import { fillMemory, memoryUuid } from "../support/gpu-memory-agent.ts";
import { type OnboardingRig, startOnboardingRig } from "../support/onboarding-rig.ts";
import { until } from "../support/until.ts";
import { nextVerbOf } from "./converge.ts";
import { Driver, plainly } from "./drive.ts";

/** The memory of a GPU as the stand-in for NVIDIA's driver states it. */
const STAND_IN_BYTES = 12 * 2 ** 20;

let rig: OnboardingRig;
let started = 0;
beforeAll(async () => {
  rig = await startOnboardingRig({ machines: 1 });
});
afterAll(() => rig?.close());

/** Makes a `Driver` whose simulated agent reports `resultOf` for each task of a soft reset. */
const agent = (resultOf: (task: Task) => unknown) =>
  new Driver(rig.test, workflowsOf(rig.services), (id) => playDecommissionedAgent(rig, id, resultOf));
const start = (level: Parameters<typeof clean>[3] = null, knobs: Parameters<typeof clean>[4] = {}) =>
  clean(rig, "soft_reset", `gpu-${++started}`, level, knobs);
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

describe("the overwrite of GPU memory", () => {
  type Filled = TaskResult<"node.gpu_fill">;
  type Challenged = TaskResult<"node.gpu_challenge">;
  interface Agent {
    readonly blocks?: number;
    readonly fill?: (result: Filled) => unknown;
    readonly answer?: (result: Challenged) => unknown;
  }
  /**
   * Returns the results of a simulated agent whose GPUs have `blocks` sample blocks each. The functions `fill` and `answer` change the results of the
   * tasks `node.gpu_fill` and `node.gpu_challenge`.
   */
  const played =
    ({ blocks = 1, fill = (result) => result, answer = (result) => result }: Agent) =>
    (task: Task): unknown => {
      if (task.type === "node.gpu_fill")
        return fill(fillMemory(task.id, task.input as TaskInput<"node.gpu_fill">, blocks));
      const result = resultOnCleanHost(task);
      return task.type === "node.gpu_challenge" ? answer(result as Challenged) : result;
    };
  const tasksOf = async (id: WorkflowId) =>
    (await rig.test.database.db.select().from(tasks).where(eq(tasks.workflowId, id)).orderBy(tasks.createdAt))
      .map(({ type }) => type)
      .filter((type) => type === "node.gpu_fill" || type === "node.gpu_challenge");
  const first = <T>(list: readonly T[], change: (one: T) => T): T[] =>
    list.map((one, index) => (index === 0 ? change(one) : one));

  const bootedWith = (evidence: Record<string, string | null>, boot_id?: string) => (task: Task) => {
    const reset = resetOf(8);
    const steps = reset.steps.map((step) => (step.step === "gpu_services_start" ? { ...step, evidence } : step));
    const boot = boot_id === undefined ? {} : { boot_id };
    return task.type === "node.gpu_scrub" ? { ...reset, ...boot, steps } : resultOnCleanHost(task);
  };
  it.each([
    ["on", { secure_boot: "on", lockdown: "integrity" }],
    ["off", { secure_boot: "off" }],
    ["unknown", { secure_boot: null }],
    ["unknown", {}],
  ])("the claim says Secure Boot %s if the agent reported %j", async (said, evidence) => {
    const { id, nodeId } = await start("reset_only");
    const [node] = await rig.test.database.db.select().from(nodes).where(eq(nodes.id, nodeId));
    const image = { generation: node?.generation, name: "custom/gpuaas-noble" };
    await rig.test.database.db
      .update(workflows)
      .set({ state: sql`${workflows.state} || ${JSON.stringify({ deployed_image: image })}::jsonb` })
      .where(sql`${workflows.id} in (select onboarding_id from node_onboardings where node_id = ${nodeId})`);
    const driver = agent(bootedWith(evidence));
    expect((await driver.drive(id)).status, await driver.story(id)).toBe("completed");
    const claims = (await recordOf(id)).claims.filter((claim) => claim.includes(`Secure Boot ${said})`));
    expect(claims).toHaveLength(8);
    expect(claims[0]).toContain("image custom/gpuaas-noble, ");
  });

  it("the claim says Secure Boot unknown if the GPUs were overwritten in another boot than they were reset", async () => {
    const { id } = await start("overwritten");
    const driver = agent(bootedWith({ secure_boot: "on" }, "earlier"));
    expect((await driver.drive(id)).status, await driver.story(id)).toBe("completed");
    expect((await recordOf(id)).claims.join()).not.toContain("Secure Boot on");
  });

  it("is left out if the profile asks for a reset only, and the record says so", async () => {
    const { id } = await start("reset_only");
    const driver = agent(resultOnCleanHost);
    expect((await driver.drive(id)).status, await driver.story(id)).toBe("completed");
    expect(await tasksOf(id)).toEqual([]);
    const { gpus, claims } = await recordOf(id);
    expect(new Set(gpus.map(({ level }) => level))).toEqual(new Set(["reset_only"]));
    expect(claims.join()).toContain("Muster did not overwrite the memory of GPU");
  });

  it("reaches challenge_verified by one fill and one challenge, and the record claims it for each GPU", async () => {
    const { id, nodeId } = await start("challenge_verified");
    await knowGpuMemory(rig, nodeId, 64 * SAMPLE_BLOCK_BYTES);
    const driver = agent(played({ blocks: 64 }));
    expect((await driver.drive(id)).status, await driver.story(id)).toBe("completed");
    expect(await tasksOf(id)).toEqual(["node.gpu_fill", "node.gpu_challenge"]);
    const { verdict, gpus, claims, required } = await recordOf(id);
    expect([verdict, gpus.length]).toEqual(["clean", 8]);
    expect(gpus[0]).toMatchObject({ level: "challenge_verified", share: 1, required_level: "challenge_verified" });
    expect(claims.filter((claim) => claim.includes("answered 64 questions"))).toHaveLength(8);
    expect(required).toContainEqual({ type: "node.gpu_challenge", step: null });
  });

  it.each([
    ["states less memory than its inventory before the tenant", 4 * 64 * SAMPLE_BLOCK_BYTES + 1, "had 16777217 bytes"],
    ["alone states how much memory a GPU has", null, "the size is the word of the host alone"],
  ])("does not reach challenge_verified on a host that %s", async (_what, bytes, says) => {
    const { id, nodeId } = await start("challenge_verified");
    if (bytes !== null) await knowGpuMemory(rig, nodeId, bytes);
    const failed = await agent(played({ blocks: 64 })).drive(id);
    expect(failed).toMatchObject({ stage: "overwrite_gpu_memory", failureCode: "cleaning_failed" });
    expect(failed.failureMessage).toContain(says);
  });

  it.each<[string, Agent, string]>([
    [
      "commits to nothing",
      { fill: (result) => ({ ...result, commitments: [] }) },
      "reset_only, and overwritten is required",
    ],
    [
      "finds other bytes than it wrote",
      {
        fill: (result) => ({
          ...result,
          commitments: first(result.commitments, (one) => ({ ...one, mismatched_blocks: 2 })),
        }),
      },
      "in 2 blocks of 64 bytes",
    ],
    [
      "fills too little of a GPU",
      {
        fill: (result) => ({
          ...result,
          commitments: first(result.commitments, (one) => ({ ...one, total_bytes: 2 * one.allocated_bytes })),
        }),
      },
      "50.00 % of GPU",
    ],
    [
      "names a step that failed",
      {
        fill: (result) => ({
          ...result,
          steps: first(result.steps, (one) => ({ ...one, outcome: "failed" as const, message: "no libcuda" })),
        }),
      },
      "no libcuda",
    ],
    [
      "answers wrongly",
      {
        answer: (result) => ({ ...result, gpus: first(result.gpus, (one) => ({ ...one, answers: ["A".repeat(43)] })) }),
      },
      "1 of 1 questions wrongly",
    ],
    [
      "does not zero the memory",
      { answer: (result) => ({ ...result, gpus: first(result.gpus, (one) => ({ ...one, release: null })) }) },
      "did not report that its memory was zeroed",
    ],
    [
      "reports a changed library of the driver",
      { fill: (result) => ({ ...result, library: { package: "libnvidia-compute-580", is_unchanged: false } }) },
      "differs from its package",
    ],
    ["reports a result that is none", { answer: () => ({}) }, "cannot be read"],
  ])("fails if the agent %s, and begins with another fill after resume", async (_what, change, says) => {
    const { id } = await start("overwritten");
    const failed = await agent(played(change)).drive(id);
    expect(failed).toMatchObject({ stage: "overwrite_gpu_memory", failureCode: "cleaning_failed" });
    expect(failed.failureMessage).toContain(says);
    expect(nextVerbOf(failed)).toBe("resume");
    const before = (await tasksOf(id)).filter((type) => type === "node.gpu_fill").length;
    const driver = agent(resultOnCleanHost);
    await driver.verb(id, "resume");
    expect((await driver.drive(id)).status, await driver.story(id)).toBe("completed");
    expect((await tasksOf(id)).filter((type) => type === "node.gpu_fill")).toHaveLength(before + 1);
    expect((await recordOf(id)).verdict).toBe("clean");
  });

  it("does not accept the level overwritten where challenge_verified is required", async () => {
    const { id } = await start("challenge_verified");
    const failed = await agent(resultOnCleanHost).drive(id);
    expect(failed.failureMessage).toContain("answered only 1 questions, and 64 are needed");
  });

  it("is refused for more GPUs than Muster can overwrite, before any memory is touched", async () => {
    const { id, nodeId } = await start("overwritten");
    await rig.test.database.db
      .update(nodes)
      .set({ gpusTotal: MOST_GPUS + 1 })
      .where(eq(nodes.id, nodeId));
    const failed = await agent(resultOnCleanHost).drive(id);
    expect(failed).toMatchObject({ failureClass: "input_config_error", failureCode: "gpu_claim_impossible" });
    expect(failed.nextAction).toContain("Lower gpu_claim_level");
    expect(await tasksOf(id)).toEqual([]);
  });

  describe("by the clearing buffers of the amdgpu driver", () => {
    const amdUuid = (uuid: unknown): string => `GPU-00112233445566${String(uuid).slice(-2)}`;
    const scrub = resetOf(8);
    const amd: Scrubbed = {
      ...scrub,
      steps: scrub.steps.map((step) =>
        step.step === "gpu_verify"
          ? { ...step, evidence: { ...step.evidence, uuid: amdUuid(step.evidence["uuid"]) } }
          : step,
      ),
    };
    /** Returns the results of a simulated agent without HIP, which read `sampled` bytes of each GPU. */
    const clearing = (sampled: number) => (task: Task) => {
      if (task.type === "node.gpu_scrub") return amd;
      if (task.type !== "node.gpu_fill") return resultOnCleanHost(task);
      const filled = fillMemory(task.id, task.input as TaskInput<"node.gpu_fill">);
      const clears = filled.commitments.map(({ uuid, pci_address, allocated_bytes: bytes }) => ({
        ...{ uuid, pci_address, cleared_bytes: bytes, total_bytes: bytes, bar_bytes: bytes },
        ...{ sampled_bytes: sampled, nonzero_units: 0, allocate_ms: 1, sample_ms: 1 },
      }));
      return { ...filled, commitments: [], clears };
    };

    it("reaches overwritten without a challenge, and the record names the technique", async () => {
      const { id } = await start("overwritten");
      const driver = agent(clearing(SAMPLE_BLOCK_BYTES));
      expect((await driver.drive(id)).status, await driver.story(id)).toBe("completed");
      expect(await tasksOf(id)).toEqual(["node.gpu_fill"]);
      const { verdict, gpus, claims, media, required } = await recordOf(id);
      expect([verdict, gpus.length]).toEqual(["clean", 8]);
      expect(gpus[0]).toMatchObject({ level: "overwritten", kernel_clear: { sampled_bytes: SAMPLE_BLOCK_BYTES } });
      expect(claims.filter((claim) => claim.includes("overwritten (kernel clear), sampled"))).toHaveLength(8);
      expect(media.filter(({ technique }) => technique === "overwritten (kernel clear), sampled")).toHaveLength(8);
      expect(required.map(({ type }) => type)).not.toContain("node.gpu_challenge");
    });

    it.each([
      ["challenge_verified", SAMPLE_BLOCK_BYTES, "reached overwritten, and challenge_verified is required"],
      ["overwritten", 0, "reached reset_only, and overwritten is required"],
    ] as const)(
      "does not return the host to the pool if the profile requires %s and %i bytes were read",
      async (level, sampled, says) => {
        const { id, nodeId } = await start(level);
        const failed = await agent(clearing(sampled)).drive(id);
        expect(failed).toMatchObject({ stage: "overwrite_gpu_memory", failureCode: "cleaning_failed" });
        expect(failed.failureMessage).toContain(says);
        const [node] = await rig.test.database.db.select().from(nodes).where(eq(nodes.id, nodeId));
        expect(node?.cordonOwner).toBe(`operation:${id}`);
      },
    );
  });

  it("waits while the hub cannot check answers, and says so", async () => {
    const { id } = await start("overwritten");
    const busy: OnboardingRig = {
      ...rig,
      services: { ...rig.services, checkAnswers: () => Promise.reject(new Error("64 challenges wait")) },
    };
    const driver = new Driver(rig.test, workflowsOf(busy.services), (one) => playDecommissionedAgent(rig, one));
    const row = await driver.drive(id, (now) =>
      now.waitReason?.includes("64 challenges wait") === true ? null : async (look) => plainly(look),
    );
    expect(row).toMatchObject({ status: "running", stage: "overwrite_gpu_memory" });
    const other = agent(resultOnCleanHost);
    expect((await other.drive(id)).status, await other.story(id)).toBe("completed");
  });

  it("fails if the reset names one GPU twice", async () => {
    const { id } = await start("overwritten");
    const scrub = resetOf(8);
    const steps = scrub.steps.map((step) =>
      step.target === "0000:07:00.0" && step.step === "gpu_verify"
        ? { ...step, evidence: { uuid: memoryUuid(0) } }
        : step,
    );
    const failed = await agent(scrubbing({ ...scrub, steps })).drive(id);
    expect(failed.failureMessage).toContain("The reset named 7 of 8 GPUs");
    expect(await tasksOf(id)).toEqual([]);
  });
});

describe.skipIf(!hasCompiler)("the overwrite by the agent's own handlers (SKIPPED without gcc)", () => {
  it("reaches challenge_verified on a stand-in for NVIDIA's driver, and leaves no memory held", async () => {
    const host = new GpuHost();
    const timing = { lookEveryMs: 20, endWithinMs: 20_000, tellEveryMs: 0 };
    const run = (taskId: TaskId) => ({ taskId, signal: new AbortController().signal, progress: () => undefined });
    const evidence = { uuid: gpuUuid(0), memory_total_mib: null };
    const scrub: Scrubbed = {
      ...resetOf(1),
      steps: resetOf(1).steps.map((step) =>
        step.step === "gpu_verify"
          ? { ...step, target: PCI_ADDRESS, evidence }
          : step.step === "gpu_reset"
            ? { ...step, target: PCI_ADDRESS }
            : step,
      ),
    };
    /** Returns the agent's result of a task. The agent's real handlers carry out the tasks that fill and challenge the GPU memory. */
    const handled = async (task: Task): Promise<unknown> => {
      if (task.type === "node.gpu_scrub") return scrub;
      if (task.type !== "node.gpu_fill" && task.type !== "node.gpu_challenge") return resultOnCleanHost(task);
      const reply =
        task.type === "node.gpu_fill"
          ? await gpuFill(host.gpuSystem, timing)(TASKS[task.type].input.parse(task.input), run(task.id))
          : await gpuChallenge(host.gpuSystem, 20)(TASKS[task.type].input.parse(task.input), run(task.id));
      if (!reply.ok) throw new Error(reply.message);
      return reply.result;
    };
    try {
      // The stand-in for NVIDIA's driver gives the agent's worker only two thirds of each GPU's memory.
      const { id, nodeId } = await start("challenge_verified", { gpu_claim_percent: 60 });
      await rig.test.database.db.update(nodes).set({ gpusTotal: 1 }).where(eq(nodes.id, nodeId));
      await knowGpuMemory(rig, nodeId, STAND_IN_BYTES, [PCI_ADDRESS]);
      const driver = agent(handled);
      expect((await driver.drive(id)).status, await driver.story(id)).toBe("completed");
      const { verdict, gpus } = await recordOf(id);
      expect(verdict).toBe("clean");
      expect(gpus).toMatchObject([{ uuid: gpuUuid(0), level: "challenge_verified", required_share: 0.6 }]);
      await until("nothing is held", () => (host.heldBytes() === 0 ? true : undefined));
    } finally {
      host.remove();
    }
  });
});
