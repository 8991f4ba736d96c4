import type { z } from "zod";
import type { PowerAction } from "../../../shared/api/power.ts";
import { isoOrNull } from "../../db/queries/workflow-views.ts";
import type { PowerAction as PowerActionRow } from "../../db/schema/index.ts";
import { AFTER_POWER_ERROR } from "../../power/next-step.ts";

export const toPowerAction = (row: PowerActionRow): z.input<typeof PowerAction> => ({
  id: row.id,
  node_id: row.nodeId,
  hostname: row.hostname,
  allocation_id: row.allocationId,
  verb: row.verb,
  immediate: row.immediate,
  state: row.state,
  requested_by: row.requestedBy,
  reason: row.reason,
  requested_at: row.requestedAt.toISOString(),
  deadline_at: row.deadlineAt.toISOString(),
  wait_reason: row.waitReason,
  error_code: row.errorCode,
  error_message: row.errorMessage,
  next_action: row.errorCode === null ? null : AFTER_POWER_ERROR[row.errorCode],
  finished_at: isoOrNull(row.finishedAt),
});
