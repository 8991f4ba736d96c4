import type { Failure } from "../../../shared/failures.ts";
import type { WorkflowStatus } from "../../../shared/workflow-status.ts";
import type { Workflow as WorkflowRow } from "../../db/schema/index.ts";

/** What every event of an end says of it, whatever ended. */
export const ending = (row: WorkflowRow, status: WorkflowStatus, failure: Failure | null) => ({
  status,
  stage: row.stage,
  ...(failure === null ? {} : { failure_class: failure.class, error_code: failure.code, message: failure.message }),
});
