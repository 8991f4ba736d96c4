import { createHash, randomUUID } from "node:crypto";
import type { NodeId, TaskId } from "../../shared/ids.ts";
import { Inventory } from "../../shared/inventory.ts";
import { canonicalJson } from "../../shared/json.ts";
import { buildRecord, type RecordFacts } from "../../shared/sanitization-build.ts";
import { MOST_RECORD_TASKS } from "../../shared/sanitization-format.ts";
import type { RecordTask, SanitizationRecord } from "../../shared/sanitization-record.ts";
import type { KnownMedium } from "../../shared/sanitization-sentences.ts";
import { CleaningSteps } from "../../shared/tasks/cleaning-step.ts";
import { VERSION } from "../../shared/version.ts";
import { databaseNow } from "../db/queries/clock.ts";
import {
  lastRecordOfAllocation,
  lockSanitizationChain,
  type RecordSubject,
  readRecordSubject,
} from "../db/queries/sanitization-records.ts";
import type { Task } from "../db/schema/index.ts";
import type { Tx } from "../db/tx.ts";

export const sha256Of = (text: string): string => createHash("sha256").update(text).digest("hex");

/**
 * The facts for the sanitization record of a cleaning between tenants that the calling workflow knows. `prepareRecord` reads every fact of the record
 * that `Turnover` does not contain from the database.
 */
export interface Turnover
  extends Pick<
    RecordFacts,
    | "allocation"
    | "without_turnover"
    | "operation"
    | "trust"
    | "release"
    | "required"
    | "refused_evidence"
    | "disk_samples"
    | "residue"
    | "gpus"
    | "statements"
    | "unsigned_reason"
  > {
  readonly nodeId: NodeId;
  /**
   * What the sanitization record says about a node whose database row was deleted, which happens long after the node's end; absent if the row must
   * still exist.
   */
  readonly withoutRow?: RecordSubject;
  readonly startedAt: Date;
  /** The tasks that cleaned the host after a tenant, in the order in which the hub queued them. */
  readonly tasks: readonly Task[];
  /** The tasks whose results the agent could not confirm when the hub last asked it to sign the sanitization record. */
  readonly unconfirmed: readonly TaskId[];
}

export interface PreparedRecord {
  readonly record: SanitizationRecord;
  /** The sanitization record as canonical JSON, which agent and hub sign. */
  readonly text: string;
}

/** Returns the cleaning steps in the result of a task; a task that cleans nothing, such as a drain, has no steps. */
function stepsOf(result: unknown): RecordTask["steps"] {
  if (result === null || typeof result !== "object" || !("steps" in result)) return [];
  return CleaningSteps.parse(result.steps);
}

/** Only a task that succeeded has a result. The steps of a failed cleaning task are unknown, so each required step of the task counts as missing. */
export function recordTaskOf(task: Task): RecordTask {
  const succeeded = task.state === "succeeded";
  return {
    task_id: task.id,
    epoch: task.epoch,
    type: task.type,
    result_sha256: succeeded ? sha256Of(canonicalJson(task.result)) : null,
    error: succeeded ? null : (task.errorCode ?? task.state).replace(/[^A-Za-z0-9._:-]/g, "_").slice(0, 64),
    steps: succeeded ? stepsOf(task.result) : [],
  };
}

/** The vendors of GPUs that tenants compute on. A display controller of another vendor, such as that of a BMC, is not a GPU that computes. */
const COMPUTES = /nvidia|\bamd\b|advanced micro devices/i;

/** Returns the media that the host's inventory names: disks by their serial numbers, and the memory of each GPU or display. */
function knownMedia(inventory: Inventory | null): KnownMedium[] {
  const named = (value: string): string | null => (value === "" ? null : value);
  return [
    ...(inventory?.disks ?? []).map(({ model, serial }) => ({
      kind: "disk",
      model: named(model),
      serial: named(serial),
    })),
    ...(inventory?.gpus ?? []).map(({ vendor, model }) => ({
      kind: COMPUTES.test(`${vendor} ${model}`) ? "gpu_memory" : "display_memory",
      model: named(model),
      serial: null,
    })),
  ];
}

const agentOf = ({ agent }: RecordSubject): SanitizationRecord["agent"] =>
  agent && {
    version: agent.version,
    boot_id: agent.bootId,
    certificate_serial: agent.certificateSerial,
    public_key_sha256: agent.publicKeySha256,
  };

/**
 * Builds the sanitization record of a cleaning between tenants as the next record of the node's chain of records (architecture 14.5). `prepareRecord`
 * does not store the record, because the agent must sign the record first. If another sanitization record joins the node's chain of records before
 * the agent has signed, `storeRecord` refuses the prepared record. The hub locks the node's chain of records only while it builds or stores a record,
 * and not while the agent signs.
 */
export async function prepareRecord(tx: Tx, turnover: Turnover): Promise<PreparedRecord> {
  const { nodeId, withoutRow, startedAt, tasks, unconfirmed, ...same } = turnover;
  if (tasks.length > MOST_RECORD_TASKS)
    throw new Error(
      `a sanitization record lists ${MOST_RECORD_TASKS} tasks at most, and the operation has ${tasks.length}`,
    );
  const last = await lockSanitizationChain(tx, nodeId);
  const earlier = same.allocation === null ? null : await lastRecordOfAllocation(tx, nodeId, same.allocation.id);
  const subject = (await readRecordSubject(tx, nodeId)) ?? withoutRow;
  if (subject === undefined) throw new Error(`there is no node ${nodeId} for a sanitization record`);
  const inventory = Inventory.safeParse(subject.inventory).data ?? null;
  return buildRecord({
    ...same,
    ...(earlier === null ? {} : { follows: earlier }),
    record_id: randomUUID(),
    node: {
      id: nodeId,
      hostname: subject.hostname,
      generation: subject.generation,
      system_id: subject.systemId,
      vendor: inventory?.system.manufacturer ?? null,
      product: inventory?.system.model ?? null,
      system_uuid: inventory?.system.uuid ?? null,
      ...(subject.assetTag === null ? {} : { property_number: subject.assetTag }),
    },
    ...(subject.location === null ? {} : { location: subject.location }),
    sequence: (last?.sequence ?? 0) + 1,
    previous_sha256: last?.recordSha256 ?? null,
    started_at: startedAt.toISOString(),
    finished_at: (await databaseNow(tx)).toISOString(),
    tasks: tasks.map(recordTaskOf),
    unconfirmed_tasks: [...unconfirmed],
    known_media: knownMedia(inventory),
    agent: same.unsigned_reason === null ? agentOf(subject) : null,
    hub: { version: VERSION },
  });
}
