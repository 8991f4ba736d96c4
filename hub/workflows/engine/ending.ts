import type { Workflow as WorkflowRow } from "../../db/schema/index.ts";
import type { WorkflowEnd } from "./workflow.ts";

export const ending = (row: WorkflowRow, { status, failure, leaves }: WorkflowEnd) => ({
  status,
  stage: row.stage,
  ...(failure === null
    ? leaves === undefined
      ? {}
      : { message: leaves.message }
    : { failure_class: failure.class, error_code: failure.code, message: failure.message }),
});
