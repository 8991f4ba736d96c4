import type { SiteId } from "../../../shared/ids.ts";
import { check, pgTable, sql, text, unique, uuid } from "../orm.ts";
import { createdAt, oneOf, updatedAt } from "./columns.ts";
import { maasSites } from "./maas-sites.ts";

/** The BMC logins of single hosts, used in place of the site's default login (lifecycle 3.2.1). */
export const maasPowerCredentialOverrides = pgTable(
  "maas_power_credential_overrides",
  {
    id: uuid("id").primaryKey().default(sql`gen_random_uuid()`),
    siteId: uuid("site_id")
      .$type<SiteId>()
      .notNull()
      .references(() => maasSites.id),
    selectorType: text("selector_type", { enum: ["hostname", "ipmi_ip", "pxe_mac"] }).notNull(),
    selectorValue: text("selector_value").notNull(),
    vaultPath: text("vault_path").notNull(),
    status: text("status", { enum: ["active", "disabled"] })
      .notNull()
      .default("active"),
    createdAt: createdAt(),
    updatedAt: updatedAt(),
  },
  (t) => [
    unique("maas_power_credential_overrides_selector_key").on(t.siteId, t.selectorType, t.selectorValue),
    check("maas_power_credential_overrides_type_check", oneOf("selector_type", ["hostname", "ipmi_ip", "pxe_mac"])),
    check("maas_power_credential_overrides_status_check", oneOf("status", ["active", "disabled"])),
  ],
);
export type MaasPowerCredentialOverride = typeof maasPowerCredentialOverrides.$inferSelect;
