import { randomUUID } from "node:crypto";
import { prepareRecord, type Turnover } from "../../hub/node/prepare-record.ts";
import { storeRecord } from "../../hub/node/store-record.ts";
import { type NodeId, WorkflowId } from "../../shared/ids.ts";
import { countersign } from "./countersign.ts";
import type { TestDatabase } from "./database.ts";

export async function storeUnsignedRecord(
  { database }: TestDatabase,
  nodeId: NodeId,
  more: Partial<Turnover> = {},
): Promise<string> {
  return database.inTx(async (tx) => {
    const { text, record } = await prepareRecord(tx, {
      nodeId,
      startedAt: new Date(),
      tasks: [],
      unconfirmed: [],
      allocation: {
        id: randomUUID(),
        tenant: `tenant ${nodeId.slice(0, 8)}`,
        login_user: "ann",
        granted_root: true,
        from: null,
        to: null,
      },
      operation: {
        decommission_id: WorkflowId.parse(randomUUID()),
        mode: "soft_reset",
        reason: "a test",
        requested_by: "admin",
      },
      trust: "in_place",
      required: [],
      residue: null,
      gpus: [],
      statements: [],
      disk_samples: [],
      unsigned_reason: "the agent did not answer",
      ...more,
    });
    const answer = await storeRecord(tx, { text, signed: null, countersign });
    if (!("stored" in answer)) throw new Error(answer.message);
    return record.record_id;
  });
}
