import { asc, eq } from "../orm.ts";
import { type SanitizationValidationRow, sanitizationValidations } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";

export async function addValidation(
  tx: Tx,
  row: typeof sanitizationValidations.$inferInsert,
): Promise<SanitizationValidationRow> {
  const [added] = await tx.insert(sanitizationValidations).values(row).returning();
  if (added === undefined) throw new Error(`validation ${row.id} was not stored`);
  return added;
}

/** Returns the validations of a sanitization record, the oldest first. */
export async function readValidations(db: Db | Tx, recordId: string): Promise<SanitizationValidationRow[]> {
  return db
    .select()
    .from(sanitizationValidations)
    .where(eq(sanitizationValidations.recordId, recordId))
    .orderBy(asc(sanitizationValidations.createdAt), asc(sanitizationValidations.id));
}
