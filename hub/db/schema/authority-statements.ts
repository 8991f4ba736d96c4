import { TRUST_KINDS } from "../../../shared/trust.ts";
import { check, integer, pgTable, sql, text } from "../orm.ts";
import { createdAt } from "./columns.ts";

/**
 * The chain of signed statements by which hosts learn to trust the hub's next CA and task-signing key (decision I6). The signed statements about the
 * hub's keys are public, nobody changes or removes one, and their sequence numbers have no gap. Every hub derives from the chain of signed statements
 * about the hub's keys which keys are valid.
 */
export const authorityStatements = pgTable(
  "authority_statements",
  {
    sequence: integer("sequence").primaryKey(),
    kind: text("kind", { enum: TRUST_KINDS }).notNull(),
    generation: integer("generation").notNull(),
    caPem: text("ca_pem").notNull(),
    orderKey: text("order_key").notNull(),
    signature: text("signature").notNull(),
    createdAt: createdAt(),
  },
  () => [check("authority_statements_sequence_check", sql.raw(`"sequence" > 0`))],
);
export type AuthorityStatementRow = typeof authorityStatements.$inferSelect;
