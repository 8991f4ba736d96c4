import { asc, eq } from "../../hub/db/orm.ts";
import { auditLogs } from "../../hub/db/schema/index.ts";
import type { Db } from "../../hub/db/tx.ts";

/**
 * The audit entries of requests that were carried out, in their order. The hub writes an entry of a refused request in the background, so such an entry
 * can come between or after those that a test looks for.
 */
export const doneAudits = (db: Db) =>
  db.select().from(auditLogs).where(eq(auditLogs.outcome, "done")).orderBy(asc(auditLogs.id));
