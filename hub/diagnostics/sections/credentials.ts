import { z } from "zod";
import { Timestamp } from "../../../shared/api/values.ts";
import { sql } from "../../db/orm.ts";
import { bounded, iso, OF } from "../rows.ts";
import { databaseSection } from "../section.ts";

const MOST_CREDENTIALS = 200;

const Credential = z.strictObject({
  site_id: z.uuid(),
  /** The kind of the secret is `former` if neither the site nor an override of a BMC login uses the secret any more. */
  kind: z.enum(["maas_token", "power", "power_override", "former"]),
  override_id: z.uuid().nullable(),
  override_status: z.string().nullable(),
  selector: z.string().nullable(),
  last_used_at: Timestamp.nullable(),
  last_worked_at: Timestamp.nullable(),
  last_failed_at: Timestamp.nullable(),
  last_failure_code: z.string().nullable(),
  last_failure_message: z.string().nullable(),
  warned_of: z.string().nullable(),
});

export const credentials = databaseSection({
  name: "credentials",
  about: "The result of the last use of each secret of a site, latest failures first; without the secret and its path",
  data: z.array(Credential),
  read: async (tx) => {
    const { rows } = await tx.execute<z.input<typeof Credential> & { of: number }>(sql`
      select u.site_id, case when o.id is not null then 'power_override' when u.path = s.default_power_creds_vault_path then 'power'
          when u.path = s.api_token_vault_path then 'maas_token' else 'former' end as kind,
        o.id as override_id, o.status as override_status, o.selector_type || ' ' || o.selector_value as selector,
        ${iso("u.last_used_at")} as last_used_at, ${iso("u.last_worked_at")} as last_worked_at,
        ${iso("u.last_failed_at")} as last_failed_at, u.last_failure_code, u.last_failure_message, u.warned_of, ${OF}
      from maas_credential_uses u join maas_sites s on s.id = u.site_id
      left join maas_power_credential_overrides o on o.vault_path = u.path
      order by u.last_failed_at desc nulls last, u.last_used_at desc nulls last, u.path limit ${MOST_CREDENTIALS}`);
    const { shown, leftOut } = bounded("credentials", rows);
    return { data: shown, leftOut };
  },
});
