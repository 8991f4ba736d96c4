import { expect, it } from "vitest";
import { AllocationId, NodeId, WorkflowId } from "../../shared/ids.ts";
import type { MachineRecords } from "../db/queries/machine-pages.ts";
import { historyOf } from "./machine-history.ts";

const id = NodeId.parse("0f0e0d0c-0b0a-4908-8706-050403020100");
const at = (minute: number): Date => new Date(Date.UTC(2026, 0, 1, 0, minute));
const moved = (minute: number, fromStatus: "active" | "offline", toStatus: "active" | "offline") => ({
  ...{ nodeId: id, type: "status_changed", owner: "heartbeat", message: "moved", occurredAt: at(minute) },
  ...{ fromStatus, toStatus },
});

it("the history of a node with more changes than it shows tells nothing of the time before them", () => {
  const operation = WorkflowId.parse(id);
  const records: MachineRecords = {
    inventories: new Map(),
    machines: new Map(),
    changes: [moved(50, "active", "offline"), moved(51, "offline", "active")],
    uses: [
      { nodeId: id, id: AllocationId.parse(id), tenant: "acme", beganAt: at(1), endingAt: at(2), endedAt: at(3) },
      { nodeId: id, id: AllocationId.parse(id), tenant: "acme", beganAt: at(55), endingAt: null, endedAt: null },
    ],
    cleanings: [{ nodeId: id, operation, beganAt: at(2), endedAt: at(3), recordId: "r", verdict: "clean" }],
  };
  expect(historyOf(id, records).map(({ status }) => status)).toEqual(["Ready", "Error", "Ready", "InUse"]);
});
