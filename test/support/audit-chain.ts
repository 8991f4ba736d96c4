import { recordAudits } from "../../hub/db/queries/audit-logs.ts";
import type { TestDatabase } from "./database.ts";

/** Writes audit entries that differ only in their details. */
export async function recordActs({ database }: TestDatabase, count: number, action = "test.act"): Promise<void> {
  const entry = { actor: "ann", role: "admin", requestId: "r", action, target: "tests", reason: null };
  const entries = Array.from({ length: count }, (_, n) => ({ ...entry, details: { n } }));
  await database.inTx((tx) => recordAudits(tx, entries));
}

/** Changes the audit without its triggers, as nobody but the owner of the tables can. */
export async function tamperWith({ database: { pool } }: TestDatabase, statement: string): Promise<void> {
  const tables = ["audit_logs", "audit_seals"];
  for (const table of tables) await pool.query(`alter table ${table} disable trigger user`);
  await pool.query(statement);
  for (const table of tables)
    for (const part of ["rows", "table"])
      await pool.query(`alter table ${table} enable always trigger ${table}_${part}`);
}
