import type { WorkflowId } from "../../../shared/ids.ts";
import { pgTable, text, uuid } from "../orm.ts";

/** What an unfinished workflow holds exclusively, e.g. `host:<site>/<hostname>` or `bmc:<site>/<address>`. */
export const workflowSubjects = pgTable("workflow_subjects", {
  subject: text("subject").primaryKey(),
  workflowId: uuid("workflow_id").$type<WorkflowId>().notNull(),
});
export type WorkflowSubject = typeof workflowSubjects.$inferSelect;
