import { ApiError } from "../../../shared/api/errors.ts";
import { WorkflowId } from "../../../shared/ids.ts";
import type { WithoutTurnover } from "../../../shared/sanitization-record.ts";
import { databaseNow } from "../../db/queries/clock.ts";
import { readDecommissionRows } from "../../db/queries/decommissions.ts";
import { lastRecordOfAllocation } from "../../db/queries/sanitization-records.ts";
import {
  type NamedOperation,
  readBegunCleaning,
  readTakingOperation,
  readTenancyOf,
} from "../../db/queries/tenancies.ts";
import { readWorkflow } from "../../db/queries/workflows.ts";
import type { AllocationRow } from "../../db/schema/index.ts";
import type { Tx } from "../../db/tx.ts";
import { prepareRecord, type Turnover } from "../../node/prepare-record.ts";
import { type Countersign, storeRecord } from "../../node/store-record.ts";
import { stateOf } from "../engine/workflow.ts";
import { CLEANING_TASKS } from "./cleaning-tasks.ts";
import { DecommissionInput, DecommissionState } from "./decommission-context.ts";
import { allocationOf, releaseOf, type TurnoverContext, turnoverOf } from "./turnover-record.ts";

interface Lost {
  readonly because: WithoutTurnover["because"];
  readonly countersign: Countersign;
}

const UNSIGNED = {
  node_removed: "no agent was asked, because the node was removed",
  host_released: "no agent was asked, because MAAS released the machine",
} as const satisfies Record<WithoutTurnover["because"], string>;

/**
 * Stores the sanitization record of a tenant's use whose host is gone. The sanitization record of a lost host says who cleaned the host and how far,
 * or that nobody did, and no agent signs the record. If an operation has already written a sanitization record of the allocation, the hub stores no
 * further record of it.
 */
export async function recordLostHost(tx: Tx, allocation: AllocationRow, { because, countersign }: Lost): Promise<void> {
  if ((await lastRecordOfAllocation(tx, allocation.nodeId, allocation.id)) !== null) return;
  const { text } = await prepareRecord(tx, await lostTurnover(tx, allocation, because));
  const kept = await storeRecord(tx, { text, signed: null, countersign: toldIfUnable(countersign) });
  // The transaction has locked the chain of sanitization records since the hub prepared this record, so no other record can have come between.
  if ("refused" in kept) throw new Error(kept.message);
}

/** While the hub has no valid order key with which to sign the sanitization record, it says so to operators, and the allocation waits. */
const toldIfUnable =
  (countersign: Countersign): Countersign =>
  (facts) => {
    try {
      return countersign(facts);
    } catch (error) {
      // Only the hub's log says why the hub cannot sign the record, because an operator who reads the allocation need not learn paths of the secret
      // store.
      const message = "The hub cannot sign the sanitization record, because it has no valid order key now.";
      throw new ApiError("conflict", message, { cause: error });
    }
  };

async function lostTurnover(tx: Tx, allocation: AllocationRow, because: Lost["because"]): Promise<Turnover> {
  const taking = await readTakingOperation(tx, allocation);
  const begun = await readBegunCleaning(tx, allocation, CLEANING_TASKS);
  const context = begun === null ? null : await contextOf(tx, begun.decommissionId, allocation);
  const found = context === null ? await nothingFound(tx, allocation) : await turnoverOf(tx, context);
  const isDeployed = typeof context?.state.deployed_at === "string";
  const release = taking === null ? undefined : await releaseBy(tx, taking, allocation);
  return {
    ...found,
    withoutRow: { ...allocation, systemId: null, inventory: null, assetTag: null, location: null, agent: null },
    without_turnover: {
      because,
      begun: begun === null ? null : { decommission_id: begun.decommissionId, mode: begun.mode },
    },
    operation: operationOf(taking),
    // If no new system was deployed after the tenant, the cleaning of the host ran on the tenant's system.
    trust: isDeployed ? found.trust : "in_place",
    release: release ?? found.release,
    unsigned_reason: UNSIGNED[because],
  };
}

/** The operation id in the sanitization record of a lost host for an operation that the hub has already deleted; no operation has this id. */
const NO_OPERATION = WorkflowId.parse("00000000-0000-0000-0000-000000000000");

const operationOf = (taking: NamedOperation | null): Turnover["operation"] =>
  taking === null
    ? {
        decommission_id: NO_OPERATION,
        mode: "unknown",
        reason: "the hub no longer has the operation",
        requested_by: "unknown",
      }
    : {
        decommission_id: taking.decommissionId,
        mode: taking.mode,
        reason: taking.reason,
        requested_by: taking.requestedBy ?? "unknown",
      };

/** Reads the facts of an operation from outside the operation's own run; null if the database no longer has the operation or its node. */
async function contextOf(tx: Tx, id: WorkflowId, allocation: AllocationRow): Promise<TurnoverContext | null> {
  const rows = await readDecommissionRows(tx, id);
  const workflow = await readWorkflow(tx, id);
  if (rows === null || workflow === null) return null;
  return {
    ...rows,
    workflowId: id,
    input: DecommissionInput.parse(workflow.input),
    state: DecommissionState.partial().parse(stateOf(workflow)),
    tenancy: await readTenancyOf(tx, allocation.id),
  };
}

/** Returns what MAAS reported about the release by which the host was lost, or undefined if the operation released nothing of the allocation. */
async function releaseBy(tx: Tx, taking: NamedOperation, allocation: AllocationRow): Promise<Turnover["release"]> {
  if (taking.releasedGeneration === null || taking.releasedGeneration < allocation.generation) return undefined;
  const context = await contextOf(tx, taking.decommissionId, allocation);
  return context === null ? undefined : releaseOf(context, null);
}

/** The facts about a tenant's use of a host for the sanitization record, if no operation cleaned the host after that use. */
async function nothingFound(
  tx: Tx,
  allocation: AllocationRow,
): Promise<Omit<Turnover, "operation" | "unsigned_reason">> {
  const now = await databaseNow(tx);
  const tenancy = await readTenancyOf(tx, allocation.id);
  return {
    nodeId: allocation.nodeId,
    startedAt: now,
    tasks: [],
    unconfirmed: [],
    allocation: tenancy === null ? null : allocationOf(tenancy, now),
    trust: "in_place",
    release: undefined,
    required: [],
    residue: null,
    gpus: [],
    statements: [],
    disk_samples: [],
  };
}
