import type { SiteId } from "../../../shared/ids.ts";
import { pgTable, primaryKey, text, uuid } from "../orm.ts";
import { createdAt } from "./columns.ts";
import { maasSites } from "./maas-sites.ts";

/**
 * The addresses of stored RoCE rows (one for each interface of a host in the RoCE network) that Muster linked in MAAS or was about to link. When no
 * RoCE row names the address of a RoCE link any more, Muster removes the link from MAAS if Muster made the link. MAAS keeps an interface's STATIC
 * link to a subnet when the machine is released, and does not record who made the link.
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
