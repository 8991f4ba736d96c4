import type { SiteId, SshKeyId } from "../../../shared/ids.ts";
import { pgTable, sql, text, uniqueIndex, uuid } from "../orm.ts";
import { createdAt, updatedAt } from "./columns.ts";

/** The public SSH keys of tenants. The hub never gets a private key. */
export const sshKeys = pgTable(
  "ssh_keys",
  {
    id: uuid("id").$type<SshKeyId>().primaryKey().default(sql`gen_random_uuid()`),
    tenant: text("tenant").notNull(),
    name: text("name").notNull(),
    /** An SSH key identifies a person, so no log and no event contains an SSH key. */
    publicKey: text("public_key").notNull(),
    fingerprint: text("fingerprint").notNull(),
    /** The sites at which the SSH key may be used; null for a key that may be used at every site. */
    sites: uuid("sites").array().$type<SiteId[]>(),
    createdBy: text("created_by").notNull(),
    createdAt: createdAt(),
    updatedAt: updatedAt(),
  },
  (t) => [
    uniqueIndex("ssh_keys_name_key").on(t.tenant, t.name),
    uniqueIndex("ssh_keys_fingerprint_key").on(t.tenant, t.fingerprint),
  ],
);
export type SshKeyRow = typeof sshKeys.$inferSelect;
