import { z } from "zod";
import { Timestamp } from "../../../shared/api/values.ts";
import { TRUST_KINDS } from "../../../shared/trust.ts";
import { sql } from "../../db/orm.ts";
import { ENROLLED_HOSTS } from "../../db/queries/authority-statements.ts";
import { bounded, iso, OF } from "../rows.ts";
import { databaseSection } from "../section.ts";

const MOST_STATEMENTS = 50;

const Statement = z.strictObject({
  sequence: z.int(),
  kind: z.enum(TRUST_KINDS),
  generation: z.int(),
  created_at: Timestamp,
  /** The number of enrolled hosts that know the chain of signed statements about the hub's keys up to the statement with the number `sequence`. */
  hosts: z.int(),
});

export const authority = databaseSection({
  name: "authority",
  about: "Rotations of the hub's CA and order key, newest first, and the number of hosts that know each",
  data: z.array(Statement),
  read: async (tx) => {
    const { rows } = await tx.execute<z.input<typeof Statement> & { of: number }>(sql`
      select s.sequence, s.kind, s.generation, ${iso("s.created_at")} as created_at,
        (select count(*)::int from ${ENROLLED_HOSTS} where a.trust_sequence >= s.sequence) as hosts, ${OF}
      from authority_statements s order by s.sequence desc limit ${MOST_STATEMENTS}`);
    const { shown, leftOut } = bounded("authority", rows);
    return { data: shown, leftOut };
  },
});
