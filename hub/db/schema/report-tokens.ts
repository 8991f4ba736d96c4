import type { NodeId } from "../../../shared/ids.ts";
import { integer, pgTable, text, uuid } from "../orm.ts";
import { createdAt } from "./columns.ts";
import { nodes } from "./nodes.ts";

/**
 * The node's cloud-init reports to the hub with the node's report token, which belongs to one generation and is stored as a hash. A report token is
 * part of URLs, so the token appears in logs and files of the host. A report token only allows its holder to set the few conditions whose source is
 * cloud-init.
 */
export const reportTokens = pgTable("report_tokens", {
  nodeId: uuid("node_id")
    .$type<NodeId>()
    .primaryKey()
    .references(() => nodes.id, { onDelete: "cascade" }),
  tokenSha256: text("token_sha256").notNull().unique(),
  generation: integer("generation").notNull(),
  createdAt: createdAt(),
});
