import { createHash } from "node:crypto";
import type { z } from "zod";
import { STORAGE_LIMITS } from "../../shared/storage-works.ts";
import type { TaskInput, TaskResult, TaskRun } from "../../shared/tasks/index.ts";
import { cleaningStep } from "../accounts/step.ts";
import { messageOf } from "../message-of.ts";
import { type FileSystemEnd, PURGE_DISK, type PurgeEnd } from "../system/storage/works.ts";
import type { System } from "../system/system.ts";
import type { WorkEnd } from "../system/workers/workers.ts";
import { isCancelledByHub, TaskCancelled } from "../tasks/cancelled.ts";
import { describeParts } from "./disk-layout.ts";
import { type DiskPicture, disksWithSerial, judgeDisk, type OrderedDisk } from "./disk-rules.ts";
import { driveOf } from "./drive-of.ts";
import { TECHNIQUES } from "./purge-technique.ts";

type Input = Pick<TaskInput<"node.storage_cleanup">, "disks" | "disk_pool" | "sample_seed" | "scratch" | "shares">;
type Step = TaskResult<"node.storage_cleanup">["steps"][number];
type Run = TaskRun<"node.storage_cleanup">;

/**
 * How many seconds a worker process of a purge may take to claim (open exclusively) and mark a disk. A worker process may need long to claim a disk,
 * because a process that it examines may hang on a file server.
 */
const BEGIN_WITHIN_S = 240;

/**
 * For each file system of the disk, a worker process may take four more minutes: two for the tools that read the disk, and two for the unmount. A
 * worker process reports its first progress after it has marked the disk, so the agent ends a worker process that hangs while it claims (opens
 * exclusively) the disk.
 */
const UNMOUNT_WITHIN_S = 240;
const MOST_PARTS = 16;
const beginWithin = (mountPoints: number): number =>
  BEGIN_WITHIN_S + Math.min(mountPoints, MOST_PARTS) * UNMOUNT_WITHIN_S;

/** The largest number of disks of a host that one task purges, as the schema of the task's input says. */
const MOST_DISKS = 64;

/**
 * True if the host has the disk itself, or at least a controller with the disk's serial number. A tenant can detach an NVMe disk's namespace or
 * driver, so that Linux shows only the disk's controller.
 */
const isOwn = (picture: DiskPicture, serial: string): boolean =>
  disksWithSerial(picture, serial).length > 0 || picture.controllers.some((one) => one.serial === serial);

/**
 * An order's disk pool, which lists disks of several hosts, is replaced by those of its disks that the host has. The agent stores the order with the
 * host's own disks, so that a restarted agent works on the same disks. If the host has none of the order's disks, or more than MOST_DISKS, the order
 * keeps its disk pool unchanged.
 */
export function withOwnDisks<T extends Input>(input: T, picture: () => DiskPicture): T {
  const { disks, disk_pool: pool = [] } = input;
  if (pool.length === 0) return input;
  const found = picture();
  const own = pool.filter((serial) => isOwn(found, serial) && disks.every((one) => one.serial !== serial));
  const all = [...disks, ...own.map((serial) => ({ serial, wwn: null }))];
  return all.length === 0 || all.length > MOST_DISKS ? input : { ...input, disks: all, disk_pool: [] };
}

function faultsOf({ disk_pool: pool = [] }: Input): Step[] {
  if (pool.length === 0) return [];
  const message = `Of the ${pool.length} data disks that the order lists, this host has none, or more than ${MOST_DISKS}. Compare the list with the host.`;
  return [cleaningStep("disk", "data disks", "failed", message, { reason: "pool_mismatch" })];
}

/** With `plan`, the agent only says for each disk of the order what a purge would do, or why it would refuse the disk. */
export async function planPurge(system: System, order: Input): Promise<Step[]> {
  const input = withOwnDisks(order, system.disks);
  const steps = faultsOf(input).map((fault) => ({ ...fault, outcome: "planned" as const }));
  for (const ordered of input.disks) steps.push(await planOf(system, ordered, mayUnmount(input)));
  return steps;
}

/** The agent unmounts a disk for its purge only if it is mounted at one of the site's scratch folders or shares. */
const mayUnmount = ({ scratch, shares }: Input): string[] => [...new Set([...scratch, ...shares])];

async function planOf(
  system: System,
  ordered: OrderedDisk,
  mountPoints: readonly string[],
): Promise<Step & { outcome: "planned" }> {
  const planned = (message: string, evidence: Step["evidence"]): Step & { outcome: "planned" } => ({
    ...cleaningStep("disk", ordered.serial, "planned", message, evidence),
    outcome: "planned",
  });
  const refused = (reason: string, detail: string, evidence: Step["evidence"] = {}) =>
    planned(`The disk would not be purged: ${detail}`, { ...evidence, reason });
  const picture = system.disks();
  const verdict = judgeDisk(picture, ordered, mountPoints);
  if (!verdict.mayErase) return refused(verdict.reason, verdict.detail);
  const device = { device: verdict.device.name };
  const drive = driveOf(verdict.device, picture, system.attempt);
  if (drive === null) return refused("no_purge_command", "The agent has no command that purges this disk.", device);
  const facts = await drive.facts();
  if (!facts.ok) return refused(facts.reason, facts.detail, device);
  const told = { ...device, model: facts.model, serial: ordered.serial, firmware: facts.firmware };
  if (!facts.choice.ok) return refused(facts.choice.reason, facts.choice.detail, told);
  const technique = TECHNIQUES[facts.choice.technique].title;
  const text = `The disk would be purged by ${technique}. All its data would be lost.`;
  if (verdict.mounts.length === 0) return planned(text, { ...told, technique });
  const { readLayout } = await import("../system/storage/read-layout.ts");
  const found = await readLayout(system.root, verdict.device, picture, verdict.mounts, system.attempt);
  if (!found.ok) return refused(found.reason, found.detail, told);
  const again = `Unmounted before, made again with label and UUID, and mounted again: ${describeParts(found.layout.parts)}.`;
  return planned(`${text} ${again}`, { ...told, technique });
}

/**
 * The agent purges the order's disks one after the other, each by worker processes outside the agent's own process. `withOwnDisks` has already
 * replaced the order's disk pool by disks of the host.
 */
export async function purgeDisks(system: System, input: Input, run: Run): Promise<Step[]> {
  const steps = faultsOf(input);
  try {
    for (const ordered of input.disks) steps.push(...(await purgeOne(system, ordered, input, run)));
  } catch (error) {
    throw isCancelledByHub(run.signal) ? await cancelledPurge(system, input, run, error) : error;
  }
  return steps;
}

/**
 * The error of a cancelled task. If the hub cancels a purge during an ATA security erase, the password stays on the disk. The result of a cancelled
 * purge has no steps, so only the error's message names the password that stays on the disk.
 */
async function cancelledPurge(system: System, { disks }: Input, { taskId }: Run, error: unknown): Promise<unknown> {
  const { passwordLeft, purgeJournal } = await import("../system/storage/purge-journal.ts");
  const left = disks.flatMap(
    ({ serial }) => passwordLeft(taskId, serial, purgeJournal(system.root, serial).read()) ?? [],
  );
  return left.length === 0 ? error : new TaskCancelled("cancelled", `${messageOf(error)} ${left.join(" ")}`);
}

/** If a worker process of a purge is lost, another one reads the disk's sanitize status and waits for the end of the same purge. */
async function purgeOne(system: System, { serial, wwn }: OrderedDisk, input: Input, run: Run): Promise<Step[]> {
  let end: WorkEnd<PurgeEnd> | null = null;
  const may_unmount = mayUnmount(input);
  const order = { task_id: run.taskId, serial, wwn, seed: input.sample_seed ?? null, may_unmount };
  for (let worker = 0; worker < STORAGE_LIMITS.disk.rounds && (end === null || isLost(end)); worker += 1)
    try {
      end = await system.workers.perform({
        taskId: run.taskId,
        part: partOf(serial, worker),
        work: PURGE_DISK,
        input: order,
        deadlineSeconds: STORAGE_LIMITS.disk.seconds,
        firstProgressSeconds: beginWithin(may_unmount.length),
        signal: run.signal,
        endsWith: isCancelledByHub,
        progress: run.progress,
      });
    } catch (error) {
      if (run.signal.aborted) throw error;
      return lostSteps(system, run, serial, "not_started", messageOf(error), null);
    }
  if (end === null) throw new Error(`No worker was started for the disk ${serial}.`);
  if (!end.ok) {
    const restored = MAY_RESTORE.includes(end.code) ? await restoreAfterLoss(system, order, run) : null;
    return lostSteps(system, run, serial, end.code, end.message, restored);
  }
  const { outcome, message, evidence, file_systems = [] } = end.result;
  return [cleaningStep("disk", serial, outcome, message, evidence), ...file_systems.map(fileSystemStep)];
}

const fileSystemStep = (one: FileSystemEnd): Step =>
  cleaningStep("file_system", one.target, one.outcome, one.message, one.evidence);

/** The faults with which a worker process can end while a file system of the disk is still unmounted. */
const MAY_RESTORE: readonly string[] = ["deadline_passed", "driver_wedged", "worker_lost"];

/**
 * If a purge's worker processes ended before the disk had its file systems again, the agent starts a last worker process. The last worker process of
 * a purge sends no purge command; it only makes or mounts the file systems that the state of the disk allows. Returns null if the worker process that
 * restores the file systems after a lost purge left no result.
 */
async function restoreAfterLoss(
  system: System,
  order: z.output<typeof PURGE_DISK.input>,
  run: Run,
): Promise<readonly FileSystemEnd[] | null> {
  const { lostFileSystems } = await import("../system/storage/restore-disk.ts");
  if (lostFileSystems(system.root, run.taskId, order.serial).length === 0) return null;
  try {
    const end = await system.workers.perform({
      taskId: run.taskId,
      part: partOf(order.serial, "restore"),
      work: PURGE_DISK,
      input: { ...order, restore_only: true as const },
      deadlineSeconds: STORAGE_LIMITS.file_system.seconds,
      signal: run.signal,
      endsWith: isCancelledByHub,
      progress: run.progress,
    });
    return end.ok ? (end.result.file_systems ?? []) : null;
  } catch (error) {
    if (run.signal.aborted) throw error;
    // The agent's journal says which file systems the purged disk still lacks, and `lostSteps` reports them.
    return null;
  }
}

/** The agent's journals of the disk tell `lostSteps` whether the lost worker process had changed the disk. */
async function lostSteps(
  system: System,
  { taskId }: Run,
  serial: string,
  reason: string,
  message: string,
  restored: readonly FileSystemEnd[] | null,
): Promise<Step[]> {
  // An idle agent uses less memory if it loads the code of a purge only when a task needs it.
  const { failedEvidence, passwordLeft, purgeJournal } = await import("../system/storage/purge-journal.ts");
  const { lostFileSystems } = await import("../system/storage/restore-disk.ts");
  const read = purgeJournal(system.root, serial).read();
  const evidence = failedEvidence(taskId, serial, read);
  const text = [`${reason}: ${message}`, passwordLeft(taskId, serial, read) ?? ""].join(" ").trim();
  return [
    cleaningStep("disk", serial, "failed", text, { ...evidence, reason }),
    ...(restored ?? lostFileSystems(system.root, taskId, serial)).map(fileSystemStep),
  ];
}

/**
 * The name of the work that a worker process does on a disk contains a hash of the disk's serial number, because a serial number may contain any
 * character.
 */
const partOf = (serial: string, worker: number | "restore"): string =>
  `disk-${createHash("sha256").update(serial).digest("hex").slice(0, 24)}-${worker}`;

const isLost = (end: WorkEnd<PurgeEnd>): boolean => !end.ok && end.code === "worker_lost";
