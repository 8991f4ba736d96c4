import type { NodeId } from "../../../shared/ids.ts";
import { integer, pgTable, text, uuid } from "../orm.ts";
import { createdAt } from "./columns.ts";
import { nodes } from "./nodes.ts";

/**
 * The token with which a node's cloud-init reports to the hub, one for each node and bound to one generation; only its hash is stored. The token is
 * part of URLs, so it appears in logs and files of the host. The token therefore allows nothing but setting the few conditions whose source is
 * cloud-init.
 */
export const reportTokens = pgTable("report_tokens", {
  nodeId: uuid("node_id")
    .$type<NodeId>()
    .primaryKey()
    .references(() => nodes.id, { onDelete: "cascade" }),
  /** Hex SHA-256 of the token. */
  tokenSha256: text("token_sha256").notNull().unique(),
  generation: integer("generation").notNull(),
  createdAt: createdAt(),
});
