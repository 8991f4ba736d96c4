import type { SiteId, SshKeyGroupId, SshKeyId } from "../../../shared/ids.ts";
import { pgTable, sql, text, uniqueIndex, uuid } from "../orm.ts";
import { createdAt, updatedAt } from "./columns.ts";

/** Groups of the SSH keys of one tenant. The status of an SSH key group is computed on each read, and no column has it. */
export const sshKeyGroups = pgTable(
  "ssh_key_groups",
  {
    id: uuid("id").$type<SshKeyGroupId>().primaryKey().default(sql`gen_random_uuid()`),
    tenant: text("tenant").notNull(),
    name: text("name").notNull(),
    description: text("description").notNull().default(""),
    /** Every SSH key of a key group may be used at all sites of the group. */
    keyIds: uuid("key_ids").array().$type<SshKeyId[]>().notNull(),
    /** The sites at which the SSH key group may be used; null for a group that may be used at every site. */
    sites: uuid("sites").array().$type<SiteId[]>(),
    createdBy: text("created_by").notNull(),
    createdAt: createdAt(),
    updatedAt: updatedAt(),
  },
  (t) => [uniqueIndex("ssh_key_groups_name_key").on(t.tenant, t.name)],
);
export type SshKeyGroupRow = typeof sshKeyGroups.$inferSelect;
