import type { SiteId } from "../../../shared/ids.ts";
import { check, pgTable, sql, text, uuid } from "../orm.ts";
import { at, oneOf } from "./columns.ts";
import { maasSites } from "./maas-sites.ts";

/**
 * The results of using each secret of a site, by the secret's path. The results of using secrets show operators which login is no longer needed and
 * which one does not work (lifecycle 12, question 4). The table `maas_credential_uses` is separate, so that the use of a secret does not change the
 * version of a row that operators edit.
 */
export const maasCredentialUses = pgTable(
  "maas_credential_uses",
  {
    path: text("path").primaryKey(),
    siteId: uuid("site_id")
      .$type<SiteId>()
      .notNull()
      .references(() => maasSites.id),
    /** When an onboarding last chose this BMC login. */
    lastUsedAt: at("last_used_at"),
    /**
     * When a deploy with this BMC login last succeeded. A successful deploy proves that the BMC login works, because MAAS must log in to the BMC for
     * the deploy.
     */
    lastWorkedAt: at("last_worked_at"),
    /** When a use of the secret last failed. `last_failed_at` becomes null again when an operator writes the secret anew. */
    lastFailedAt: at("last_failed_at"),
    lastFailureCode: text("last_failure_code"),
    lastFailureMessage: text("last_failure_message"),
    /**
     * For a MAAS token: the names of the token's user since the token was written, the current name last. More than one name of a token's user means
     * that the user was renamed.
     */
    userNames: text("user_names").array().notNull().default(sql`'{}'::text[]`),
    /** The last warning about this secret that operators were given. `warned_of` is null if nothing is wrong with the secret. */
    warnedOf: text("warned_of", { enum: ["unused", "failing"] }),
  },
  () => [check("maas_credential_uses_warned_of_check", oneOf("warned_of", ["unused", "failing"]))],
);
