import type { NodeId } from "../../../shared/ids.ts";
import { integer, pgTable, text, uuid } from "../orm.ts";
import { createdAt } from "./columns.ts";
import { nodes } from "./nodes.ts";

/**
 * The one token by which a node's cloud-init reports, bound to the generation that it was issued in; only the hash is stored. It stands in addresses,
 * hence in logs and in files of the host: it sets the few conditions that cloud-init is a source of, and opens nothing else.
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
