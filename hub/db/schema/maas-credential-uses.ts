import type { SiteId } from "../../../shared/ids.ts";
import { check, pgTable, sql, text, uuid } from "../orm.ts";
import { at, oneOf } from "./columns.ts";
import { maasSites } from "./maas-sites.ts";

/**
 * What came of using each secret of a site, by its path: by this a login that nobody needs any more, or that does not work, is told from the others
 * (lifecycle 12, question 4). Apart from the rows that operators edit, so that a use does not change their version.
 */
export const maasCredentialUses = pgTable(
  "maas_credential_uses",
  {
    path: text("path").primaryKey(),
    siteId: uuid("site_id")
      .$type<SiteId>()
      .notNull()
      .references(() => maasSites.id),
    /** An onboarding chose it. */
    lastUsedAt: at("last_used_at"),
    /** A deploy with it got through, for which MAAS has to log in to the BMC. */
    lastWorkedAt: at("last_worked_at"),
    /** Null again once the secret was written anew. */
    lastFailedAt: at("last_failed_at"),
    lastFailureCode: text("last_failure_code"),
    lastFailureMessage: text("last_failure_message"),
    /** Of a MAAS token: the names under which its user was seen since it was written, the present one last. More than one: he was renamed. */
    userNames: text("user_names").array().notNull().default(sql`'{}'::text[]`),
    /** What operators were last told of it; null where nothing is wrong. */
    warnedOf: text("warned_of", { enum: ["unused", "failing"] }),
  },
  () => [check("maas_credential_uses_warned_of_check", oneOf("warned_of", ["unused", "failing"]))],
);
