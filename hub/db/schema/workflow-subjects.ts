import type { WorkflowId } from "../../../shared/ids.ts";
import { pgTable, text, uuid } from "../orm.ts";

/** A subject that an unfinished workflow holds exclusively, for example `host:<site>/<hostname>` or `bmc:<site>/<address>`. */
export const workflowSubjects = pgTable("workflow_subjects", {
  subject: text("subject").primaryKey(),
  workflowId: uuid("workflow_id").$type<WorkflowId>().notNull(),
});
export type WorkflowSubject = typeof workflowSubjects.$inferSelect;
