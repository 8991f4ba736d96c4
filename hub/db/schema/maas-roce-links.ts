import type { SiteId } from "../../../shared/ids.ts";
import { pgTable, primaryKey, text, uuid } from "../orm.ts";
import { createdAt } from "./columns.ts";
import { maasSites } from "./maas-sites.ts";

/**
 * Addresses that a RoCE row has named for an interface of a machine, and that we linked or were about to: they are of our making, and go when no row
 * names them any more. MAAS keeps a STATIC link over releases, and tells nobody who made it.
 */
export const maasRoceLinks = pgTable(
  "maas_roce_links",
  {
    siteId: uuid("site_id")
      .$type<SiteId>()
      .notNull()
      .references(() => maasSites.id),
    maasSystemId: text("maas_system_id").notNull(),
    interface: text("interface").notNull(),
    ipAddress: text("ip_address").notNull(),
    createdAt: createdAt(),
  },
  (t) => [primaryKey({ columns: [t.siteId, t.maasSystemId, t.interface, t.ipAddress] })],
);
