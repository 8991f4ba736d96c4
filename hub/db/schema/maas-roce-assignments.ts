import type { SiteId } from "../../../shared/ids.ts";
import { pgTable, sql, text, unique, uuid } from "../orm.ts";
import { createdAt, updatedAt } from "./columns.ts";
import { maasSites } from "./maas-sites.ts";

/** The addresses of hosts in the RoCE network (lifecycle 3.3), one for each site, hostname and interface. */
export const maasRoceAssignments = pgTable(
  "maas_roce_assignments",
  {
    id: uuid("id").primaryKey().default(sql`gen_random_uuid()`),
    siteId: uuid("site_id")
      .$type<SiteId>()
      .notNull()
      .references(() => maasSites.id),
    hostname: text("hostname").notNull(),
    interface: text("interface").notNull(),
    ipv4Cidr: text("ipv4_cidr").notNull(),
    createdAt: createdAt(),
    updatedAt: updatedAt(),
  },
  (t) => [
    unique("maas_roce_assignments_interface_key").on(t.siteId, t.hostname, t.interface),
    unique("maas_roce_assignments_address_key").on(t.siteId, t.ipv4Cidr),
  ],
);
export type MaasRoceAssignment = typeof maasRoceAssignments.$inferSelect;
