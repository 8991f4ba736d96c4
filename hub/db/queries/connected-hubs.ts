import { sql } from "../orm.ts";
import type { Db } from "../tx.ts";

export async function connectedHubs(db: Db): Promise<string[]> {
  const { rows } = await db.execute<{ name: string }>(sql`
    select distinct application_name || coalesce(' at ' || host(client_addr), '') as name from pg_stat_activity
    where datname = current_database() and application_name like 'muster-hub %' order by 1`);
  return rows.map(({ name }) => name);
}
