import type { z } from "zod";
import { STORAGE_LIMITS, type StorageWork, storageWorks } from "../../shared/storage-works.ts";
import type { TaskHandlers, TaskInput, TaskResult, TaskRun } from "../../shared/tasks/index.ts";
import { cleaningStep } from "../accounts/step.ts";
import { messageOf } from "../message-of.ts";
import { planPurge, purgeDisks, withOwnDisks } from "../storage/purge-steps.ts";
import { withoutWekaLines } from "../storage/weka-fstab.ts";
import type { FolderFault } from "../system/storage/unmounted-folders.ts";
import {
  EMPTY_FOLDER,
  FILL_FREE_SPACE,
  LEAVE_WEKA,
  NOT_MOUNTED,
  REMOVE_WEKA_TOKENS,
  type StepEnd,
} from "../system/storage/works.ts";
import type { System } from "../system/system.ts";
import type { WorkKind } from "../system/workers/define-work.ts";
import { isCancelledByHub } from "./cancelled.ts";

const TYPE = "node.storage_cleanup";
type Input = TaskInput<typeof TYPE>;
type Step = TaskResult<typeof TYPE>["steps"][number];

const FSTAB = "/etc/fstab";

interface PlannedStep {
  readonly step: StorageWork["step"];
  readonly target: string;
  readonly intent: string;
  readonly work: WorkKind<z.ZodType, typeof StepEnd>;
  readonly input: unknown;
  readonly deadlineSeconds: number;
}

/**
 * A storage cleanup does each of its steps in a worker process outside the agent's own process. A restarted agent plans the same steps of a storage
 * cleanup, because the task's input is the same. A restarted agent takes the results of ended worker processes, and follows the running worker
 * process.
 */
export const storageCleanup =
  (system: System): TaskHandlers[typeof TYPE] =>
  async (order, run) => {
    if (order.plan)
      return { ok: true, result: { steps: [...plannedSteps(order), ...(await planOfDisks(system, order))] } };
    const input = order.scope === "weka" ? order : withOwnDisks(order, system.disks);
    const planned = stepsOf(input);
    try {
      system.workers.begin(run.taskId, input);
    } catch (error) {
      return {
        ok: false,
        error: "not_recorded",
        message: `The agent could not write its state folder: ${messageOf(error)}. Nothing was cleaned.`,
      };
    }
    // The agent loads the code of a storage cleanup only for the task, so that an idle agent uses less memory.
    const { unmountedFolders } = await import("../system/storage/unmounted-folders.ts");
    const faultOf = unmountedFolders(system.root, run.taskId, () => system.disks());
    const steps: Step[] = [];
    for (const [index, one] of planned.entries())
      steps.push(
        skippedFill(one, steps) ??
          (await skippedWeka(system, one)) ??
          withFault(faultOf, await performStep(system, one, `step-${index}`, run)),
      );
    if (input.scope !== "local") steps.push(await cleanFstab(system, input.weka_prefixes));
    if (input.scope !== "weka") steps.push(...(await purgeDisks(system, input, run)));
    return { ok: true, result: { steps: withoutPurgedFolders(steps) } };
  };

/**
 * If an earlier task unmounted the disk of a folder, the step that empties the folder fails. An unmounted disk keeps its data although the bare
 * folder at its mount point is empty.
 */
function withFault(faultOf: FolderFault, one: Step): Step {
  if (one.outcome === "failed" || (one.step !== "scratch" && one.step !== "share")) return one;
  const fault = faultOf(one.target);
  return fault === null
    ? one
    : cleaningStep(one.step, one.target, "failed", fault.message, { ...fault.evidence, ...one.evidence });
}

/**
 * The step that empties a folder fails if the folder's disk was not mounted. If the same storage cleanup later purges the disk and mounts its new
 * file system, the failed step of the disk's folder becomes `skipped`. An earlier task may have been interrupted between the purge of a disk and the
 * mount of its new file system.
 */
const withoutPurgedFolders = (steps: readonly Step[]): Step[] =>
  steps.map((one) =>
    (one.step === "share" || one.step === "scratch") &&
    one.evidence["reason"] === NOT_MOUNTED &&
    steps.some(({ step, target, outcome }) => step === "file_system" && target === one.target && outcome === "ok")
      ? { ...one, outcome: "skipped", message: "The disk was not mounted, and was purged later in the task." }
      : one,
  );

function plannedSteps(input: Input): Step[] {
  const steps = stepsOf(input).map((one) => stepOf(one, "planned", one.intent));
  const intent = "The lines of the tenant's Weka file systems would be removed.";
  if (input.scope !== "local") steps.push(cleaningStep("weka_fstab", FSTAB, "planned", intent));
  return steps;
}

const planOfDisks = async (system: System, input: Input): Promise<Step[]> =>
  input.scope === "weka" ? [] : planPurge(system, input);

const stepOf = (one: PlannedStep, outcome: Step["outcome"], message: string, evidence: Step["evidence"] = {}): Step =>
  cleaningStep(one.step, one.target, outcome, message, evidence);

const stepsOf = (input: Input): PlannedStep[] =>
  storageWorks(input).map((one) => ({
    ...one,
    ...WORKS[one.step](one.target),
    deadlineSeconds: STORAGE_LIMITS[one.step].seconds,
  }));

const emptied =
  (use: "temporary" | "scratch", must_be_mount = false) =>
  (path: string) => ({
    intent: "Everything in the folder would be removed, except what the running system needs.",
    work: EMPTY_FOLDER,
    input: { path, use, must_be_mount },
  });

/** The kind of work, with its input, that a worker process does for each step of the storage cleanup. */
const WORKS: Record<StorageWork["step"], (target: string) => Pick<PlannedStep, "intent" | "work" | "input">> = {
  temporary: emptied("temporary"),
  scratch: emptied("scratch"),
  share: emptied("scratch", true),
  free_space: (path) => ({
    intent: "The free space of the folder's file system would be overwritten with zeros.",
    work: FILL_FREE_SPACE,
    input: { path },
  }),
  weka_mounts: () => ({
    intent:
      "Each Weka file system would be unmounted, and the containers of the client removed. The client stays installed.",
    work: LEAVE_WEKA,
    input: {},
  }),
  weka_tokens: () => ({
    intent: "The login tokens of Weka would be removed from the homes of all accounts.",
    work: REMOVE_WEKA_TOKENS,
    input: {},
  }),
};

/** Skips the step that fills a folder's free space if the folder could not be opened, or if the step of an earlier folder fills the same file system. */
function skippedFill(one: PlannedStep, earlier: readonly Step[]): Step | null {
  if (one.step !== "free_space") return null;
  const emptied = earlier.filter(({ step }) => step !== "free_space");
  const device = emptied.find(({ target }) => target === one.target)?.evidence["device"];
  if (device === undefined)
    return stepOf(one, "skipped", "The folder was not opened, so its file system is not known.");
  const first = emptied.find(({ evidence }) => evidence["device"] === device);
  return first?.target === one.target
    ? null
    : stepOf(one, "skipped", `The free space of this file system is the work of the step for ${first?.target}.`);
}

/** The storage cleanup never removes a Weka client, so a restarted agent decides about the step `weka_mounts` as the agent did before its restart. */
async function skippedWeka(system: System, one: PlannedStep): Promise<Step | null> {
  if (one.step !== "weka_mounts") return null;
  const isPresent = await Promise.all(["/opt/weka", "/proc/wekafs"].map((path) => system.isPresent(path)));
  if (isPresent.includes(true) || (await system.mounts()).some(({ type }) => type === "wekafs")) return null;
  return stepOf(one, "skipped", "This host has no Weka client and no Weka file system.");
}

/** The agent edits /etc/fstab in its own process: if a restart of the agent repeats the edit, the second edit changes nothing. */
async function cleanFstab(system: System, prefixes: readonly string[]): Promise<Step> {
  const step = (outcome: Step["outcome"], message: string, evidence: Step["evidence"] = {}): Step =>
    cleaningStep("weka_fstab", FSTAB, outcome, message, evidence);
  try {
    const before = await system.read(FSTAB);
    if (before === null) return step("skipped", "This host has no such file.");
    const { text, removed, kept } = withoutWekaLines(before, prefixes);
    if (removed > 0) await system.write(FSTAB, text, 0o644);
    const message = `${removed} lines of Weka were removed; ${kept} others are outside the tenant's folders and stay.`;
    return step("ok", message, { lines_removed: removed, lines_kept: kept });
  } catch (error) {
    return step("failed", `The file could not be changed: ${messageOf(error)}`);
  }
}

async function performStep(system: System, one: PlannedStep, part: string, run: TaskRun<typeof TYPE>): Promise<Step> {
  try {
    const end = await system.workers.perform({
      taskId: run.taskId,
      part,
      work: one.work,
      input: one.input,
      deadlineSeconds: one.deadlineSeconds,
      signal: run.signal,
      endsWith: isCancelledByHub,
      progress: run.progress,
    });
    return end.ok
      ? stepOf(one, end.result.outcome, end.result.message, end.result.evidence)
      : stepOf(one, "failed", `${end.code}: ${end.message}`, { error: end.code, done: end.progress?.done ?? null });
  } catch (error) {
    if (run.signal.aborted) throw error;
    return stepOf(one, "failed", `not_started: ${messageOf(error)}`, { error: "not_started" });
  }
}
