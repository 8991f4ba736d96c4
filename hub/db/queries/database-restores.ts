import { databaseRestores } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";

export async function recordRestore(tx: Tx, backupTakenAt: Date): Promise<void> {
  await tx.insert(databaseRestores).values({ backupTakenAt });
}

/** Returns for each restore of the database the time span between the backup and the restore, whose rows are lost. */
export const readLostTimes = (db: Db): Promise<{ readonly from: Date; readonly until: Date }[]> =>
  db.select({ from: databaseRestores.backupTakenAt, until: databaseRestores.restoredAt }).from(databaseRestores);
