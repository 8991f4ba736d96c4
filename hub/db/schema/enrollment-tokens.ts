import type { NodeId, WorkflowId } from "../../../shared/ids.ts";
import { index, integer, pgTable, sql, text, uuid } from "../orm.ts";
import { at, createdAt } from "./columns.ts";

/**
 * The one-time enrollment tokens, of which the hub stores only hashes. The row of a used enrollment token holds the hash of the public key with which
 * the host enrolled. If the hub's answer to an enrollment was lost, only the agent with the key of the first request may enroll again with the token.
 */
export const enrollmentTokens = pgTable(
  "enrollment_tokens",
  {
    id: uuid("id").primaryKey().default(sql`gen_random_uuid()`),
    tokenSha256: text("token_sha256").notNull().unique(),
    nodeId: uuid("node_id").$type<NodeId>().notNull(),
    workflowId: uuid("workflow_id").$type<WorkflowId>(),
    generation: integer("generation").notNull(),
    maasSystemId: text("maas_system_id"),
    boundMacs: text("bound_macs").array().notNull().default([]),
    expiresAt: at("expires_at").notNull(),
    usedAt: at("used_at"),
    usedKeySha256: text("used_key_sha256"),
    revokedAt: at("revoked_at"),
    createdAt: createdAt(),
  },
  (t) => [
    index("enrollment_tokens_age_idx").on(sql`greatest(expires_at, used_at, revoked_at)`),
    index("enrollment_tokens_node_idx").on(t.nodeId),
  ],
);
export type EnrollmentToken = typeof enrollmentTokens.$inferSelect;
