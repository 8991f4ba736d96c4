import type { WorkflowId } from "../../../shared/ids.ts";
import { pgTable, text, uuid } from "../orm.ts";

/** What a workflow that is not over holds for itself alone, e.g. `host:<site>/<hostname>`, `bmc:<site>/<address>`. */
export const workflowSubjects = pgTable("workflow_subjects", {
  subject: text("subject").primaryKey(),
  workflowId: uuid("workflow_id").$type<WorkflowId>().notNull(),
});
export type WorkflowSubject = typeof workflowSubjects.$inferSelect;
