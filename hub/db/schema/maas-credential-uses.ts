import type { SiteId } from "../../../shared/ids.ts";
import { check, pgTable, sql, text, uuid } from "../orm.ts";
import { at, oneOf } from "./columns.ts";
import { maasSites } from "./maas-sites.ts";

/**
 * The results of using each secret of a site, by the secret's path. From the results of using secrets, an operator learns which login is no longer
 * needed and which login fails (lifecycle 12, question 4). The table `maas_credential_uses` is separate from the tables of logins, because the use of
 * a secret must not change the version of a login's row.
 */
export const maasCredentialUses = pgTable(
  "maas_credential_uses",
  {
    path: text("path").primaryKey(),
    siteId: uuid("site_id")
      .$type<SiteId>()
      .notNull()
      .references(() => maasSites.id),
    /** The time when an onboarding last chose the BMC login under the path `path` of the secret store. */
    lastUsedAt: at("last_used_at"),
    /**
     * The time when a deploy that used this BMC login last succeeded. A successful deploy proves that the BMC login works, because MAAS must log in
     * to the BMC for the deploy.
     */
    lastWorkedAt: at("last_worked_at"),
    /** The time when a use of the secret last failed; null after an operator has replaced the secret. */
    lastFailedAt: at("last_failed_at"),
    lastFailureCode: text("last_failure_code"),
    lastFailureMessage: text("last_failure_message"),
    /**
     * The names that the user of a MAAS token has had since the token was written, the current name last. More than one name of a token's user means
     * that the user was renamed.
     */
    userNames: text("user_names").array().notNull().default(sql`'{}'::text[]`),
    /** The kind of the last warning about the secret that the hub gave operators; null if the secret works and is in use. */
    warnedOf: text("warned_of", { enum: ["unused", "failing"] }),
  },
  () => [check("maas_credential_uses_warned_of_check", oneOf("warned_of", ["unused", "failing"]))],
);
