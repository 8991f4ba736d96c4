import type { TaskInput, TaskReply } from "../../shared/tasks/index.ts";
import { messageOf } from "../message-of.ts";
import type { System } from "../system/system.ts";
import { bootFacts } from "./boot-facts.ts";
import { runCleanerShader } from "./cleaner-shader.ts";
import { climb, resetSteps } from "./climb.ts";
import { freeFromProcesses, stopServices } from "./free-gpus.ts";
import { type GivenBack, giveBack, giveBackLeftovers, listUnits } from "./gpu-give-back.ts";
import { describe, gpuHolders } from "./gpu-holders.ts";
import { needOf } from "./gpu-need.ts";
import { noteResets } from "./gpu-resets.ts";
import { runningServices } from "./gpu-services.ts";
import type { GpuReport } from "./gpu-state.ts";
import { type GpuStep, gpuStep, named } from "./gpu-steps.ts";
import { DriverWedged, StateUnreadable, ToolMissing } from "./gpu-tool.ts";
import { gpuTools, pciGpus } from "./gpu-tools.ts";
import { presentMoment } from "./kernel-faults.ts";
import { resetGroups } from "./reset-groups.ts";
import { markWedged, wedgedInThisBoot, writeJournal } from "./scrub-journal.ts";
import type { Scrub, ScrubRun } from "./scrub-state.ts";
import { SCRUB_TIMING, type ScrubTiming } from "./scrub-timing.ts";
import { switchesStep } from "./switches-step.ts";
import { verify } from "./verify-steps.ts";

type Reply = TaskReply<"node.gpu_scrub">;
type Input = TaskInput<"node.gpu_scrub">;
type ErrorCode = Extract<Reply, { ok: false }>["error"];

const failure = (error: ErrorCode, message: string): Reply => ({ ok: false, error, message });
/**
 * Cleans a host's GPUs by resets, which allow only the claim `reset_only` about the GPUs' memory in the sanitization record (decisions C2 and C3).
 * The GPU cleaning frees and resets the GPUs, and compares their states before and after the reset. At its end, even after an error, the GPU cleaning
 * restores the services, kernel modules and persistence modes that it stopped. The task `node.gpu_scrub` fails only if the cleaning has changed
 * nothing on the host's GPUs.
 */
export async function scrubGpus(
  system: System,
  input: Input,
  run: ScrubRun,
  timing: ScrubTiming = SCRUB_TIMING,
): Promise<Reply> {
  const wedged = await wedgedInThisBoot(system);
  if (wedged !== null) return failure("driver_wedged", wedged);
  const tools = gpuTools(input.vendor, system, timing);
  const startedAt = presentMoment();
  let before: GpuReport;
  try {
    if (!input.plan) {
      const leftovers = await giveBackLeftovers(system, timing);
      if (leftovers !== null && leftovers.failures.length > 0)
        return failure("services_not_restored", named(leftovers.failures, 3));
    }
    before = await tools.read();
  } catch (error) {
    if (error instanceof DriverWedged) await markWedged(system, error);
    if (error instanceof DriverWedged) return failure("driver_wedged", error.message);
    if (error instanceof ToolMissing) return failure("tool_missing", error.message);
    if (error instanceof StateUnreadable) return failure("state_unreadable", error.message);
    throw error;
  }
  const journal = {
    task_id: run.taskId,
    boot_id: await system.bootId(),
    vendor: input.vendor,
    services: [],
    modules: [],
    persistent: [],
  };
  const scrub: Scrub = {
    system,
    timing,
    tools,
    input,
    run,
    steps: [],
    before: before.gpus,
    journal,
    fabricUnits: [],
    idle: [],
    after: [],
    resets: new Map(),
  };
  if (input.plan) return reply(scrub, await planned(scrub), "none");
  await writeJournal(system, journal);
  const wedge = await clean(scrub);
  const ends = await verify(scrub, startedAt, wedge);
  // A clean GPU has had no fault since the start of the cleaning.
  await noteResets(system, ends.clean, startedAt.monotonicUs);
  return reply(scrub, scrub.steps, needOf(ends.gpus, wedge !== null || ends.wedged));
}

async function reply(scrub: Scrub, steps: readonly GpuStep[], needs: ReturnType<typeof needOf>): Promise<Reply> {
  return { ok: true, result: { steps: [...steps], needs, boot_id: await scrub.system.bootId() } };
}

/**
 * Returns the error if it says that the GPU driver hangs, and otherwise null. With a hanging GPU driver, the agent restores nothing before the next
 * boot, because every program that uses the driver would hang.
 */
async function clean(scrub: Scrub): Promise<DriverWedged | null> {
  let wedge: DriverWedged | null = null;
  try {
    const switches = await switchesStep(scrub);
    if (switches !== null) scrub.steps.push(switches);
    await stopServices(scrub);
    if (await freeFromProcesses(scrub)) {
      await climb(scrub);
      await runCleanerShader(scrub);
    }
  } catch (error) {
    if (error instanceof DriverWedged) wedge = error;
    else if (error instanceof ToolMissing)
      scrub.steps.push(gpuStep("gpu_reset", "host", "failed", `tool_missing: ${error.message}`));
    else throw error;
  } finally {
    scrub.steps.push(...resetSteps(scrub));
    wedge = (await bringBack(scrub, wedge)) ?? wedge;
  }
  return wedge;
}

async function bringBack(scrub: Scrub, wedge: DriverWedged | null): Promise<DriverWedged | null> {
  const { system, timing, run, steps, journal } = scrub;
  const boot = await bootFacts(system);
  run.progress({ step: "gpu_services_start" });
  let caught = wedge;
  let given: GivenBack = { services: [], failures: [] };
  try {
    if (caught === null) given = await giveBack(system, timing, journal);
  } catch (error) {
    if (error instanceof DriverWedged) caught = error;
    else given = { services: [], failures: [messageOf(error)] };
  }
  if (caught !== null) {
    await markWedged(system, caught);
    const message = `driver_wedged: ${caught.message} The stopped services start at the next boot.`;
    steps.push(
      gpuStep("gpu_services_start", "host", "failed", message, { stopped: journal.services.join(" "), ...boot }),
    );
    return caught;
  }
  const isBack = given.failures.length === 0;
  const message = isBack ? "All that was stopped runs again." : `services_not_restored: ${named(given.failures, 3)}`;
  const evidence = { started: given.services.join(" "), modules: [...journal.modules].reverse().join(" "), ...boot };
  steps.push(gpuStep("gpu_services_start", "host", isBack ? "ok" : "failed", message, evidence));
  return null;
}

async function planned(scrub: Scrub): Promise<GpuStep[]> {
  const { system, timing, input, before } = scrub;
  const services = runningServices(input.vendor, await listUnits(system, timing));
  const except = services.filter(({ fabric }) => fabric).map(({ unit }) => unit);
  const stop = services.filter(({ fabric }) => !fabric).map(({ unit }) => unit);
  const { holders, unreadable } = await gpuHolders(system, input.vendor, except);
  const isOwn = (unit: string | null): boolean => unit !== null && stop.includes(unit);
  const others = holders.filter(({ unit }) => !isOwn(unit));
  const switches = await switchesStep(scrub);
  const onBus = await pciGpus(system, input.vendor);
  const plan = (step: GpuStep["step"], target: string, message: string, evidence = {}): GpuStep =>
    gpuStep(step, target, "planned", message, evidence);
  return [
    ...(switches === null ? [] : [{ ...switches, outcome: "planned" as const }]),
    plan("gpu_services_stop", "host", `Would stop ${stop.length} services.`, { stop: stop.join(" ") }),
    plan("gpu_holders", "host", others.length === 0 ? "No process holds a GPU." : `Hold a GPU: ${describe(others)}.`, {
      found: others.length,
      unreadable: unreadable.length,
      would_end: input.kill_holders,
    }),
    ...resetGroups(before).flatMap(({ name, gpus }) =>
      gpus.map((gpu) =>
        plan("gpu_reset", gpu.pci, gpus.length === 1 ? "Would be reset alone." : `Would be reset with ${name}.`, {
          uuid: gpu.uuid,
          group: name,
          rungs: input.rungs.join(" "),
          faults: gpu.faults.join("; "),
        }),
      ),
    ),
    plan("gpu_verify", "host", `The order expects ${input.expected_gpus} GPUs.`, {
      expected: input.expected_gpus,
      listed: before.length,
      on_bus: onBus.length,
    }),
  ];
}
