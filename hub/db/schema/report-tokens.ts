import type { NodeId } from "../../../shared/ids.ts";
import { integer, pgTable, text, uuid } from "../orm.ts";
import { createdAt } from "./columns.ts";
import { nodes } from "./nodes.ts";

/**
 * The one report token of each node, bound to one generation and stored as a hash; the node's cloud-init reports to the hub with this token. The
 * report token is part of URLs, so the token appears in logs and files of the host. The report token allows nothing but setting the few conditions
 * whose source is cloud-init.
 */
export const reportTokens = pgTable("report_tokens", {
  nodeId: uuid("node_id")
    .$type<NodeId>()
    .primaryKey()
    .references(() => nodes.id, { onDelete: "cascade" }),
  /** The SHA-256 of the report token, in hex. */
  tokenSha256: text("token_sha256").notNull().unique(),
  generation: integer("generation").notNull(),
  createdAt: createdAt(),
});
