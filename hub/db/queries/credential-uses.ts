import type { SiteId } from "../../../shared/ids.ts";
import { and, eq, inArray, type SQL, sql } from "../orm.ts";
import { maasCredentialUses, maasSites } from "../schema/index.ts";
import { toDate, toDateOrNull } from "../timestamp.ts";
import type { Db, Tx } from "../tx.ts";

type Place = { readonly siteId: SiteId; readonly path: string };

/** Records that an onboarding chose the BMC login under the given path of the secret store (lifecycle 3.2.1). */
export const recordCredentialUse = (tx: Tx, place: Place): Promise<void> => note(tx, place, { lastUsedAt: sql`now()` });

/** If the database already holds a later success of the BMC login, `recordCredentialWorked` does not change the time. */
export const recordCredentialWorked = (tx: Tx, place: Place, at: Date): Promise<void> =>
  note(tx, place, {
    lastWorkedAt: sql`greatest(${maasCredentialUses.lastWorkedAt}, ${at.toISOString()}::timestamptz)`,
  });

export const recordCredentialFailure = (
  tx: Tx,
  place: Place,
  failure: { readonly code: string; readonly message: string },
): Promise<void> =>
  note(tx, place, {
    lastFailedAt: sql`now()`,
    lastFailureCode: failure.code,
    lastFailureMessage: failure.message,
  });

/**
 * MAAS refuses most of the hub's calls if the user of the site's MAAS token is not an administrator. `recordTokenRights` stores since when the user
 * of the site's MAAS token has the present rights.
 */
export async function recordTokenRights(tx: Tx, siteId: SiteId, isAdministrator: boolean): Promise<void> {
  const { lastFailedAt, lastWorkedAt, lastFailureCode } = maasCredentialUses;
  const [site] = await tx
    .select({
      path: maasSites.apiTokenVaultPath,
      knownToLack: sql<boolean>`coalesce(${lastFailureCode} = ${NOT_ADMINISTRATOR}
        and (${lastWorkedAt} is null or ${lastFailedAt} > ${lastWorkedAt}), false)`,
    })
    .from(maasSites)
    .leftJoin(maasCredentialUses, eq(maasCredentialUses.path, maasSites.apiTokenVaultPath))
    .where(eq(maasSites.id, siteId));
  if (site === undefined || site.path === null || site.knownToLack !== isAdministrator) return;
  const place = { siteId, path: site.path };
  if (isAdministrator) await note(tx, place, { lastWorkedAt: sql`now()` });
  else
    await recordCredentialFailure(tx, place, {
      code: NOT_ADMINISTRATOR,
      message: "The user of this token is not an administrator of MAAS.",
    });
}
export const NOT_ADMINISTRATOR = "not_administrator";

/** The number of names of a MAAS token's user, old and present, that the hub keeps. */
const NAMES_KEPT = 8;

/**
 * Stores the present name of the MAAS token's user, and returns the names that the user had since the token was written. A MAAS token belongs to one
 * user, so a different name means that the user was renamed.
 */
export async function recordTokenUser(tx: Tx, siteId: SiteId, username: string): Promise<string[]> {
  const [site] = await tx.select({ path: maasSites.apiTokenVaultPath }).from(maasSites).where(eq(maasSites.id, siteId));
  if (site === undefined || site.path === null) return [];
  const [known] = await tx
    .select({ names: maasCredentialUses.userNames })
    .from(maasCredentialUses)
    .where(eq(maasCredentialUses.path, site.path));
  const before = known?.names ?? [];
  const formerly = before.filter((name) => name !== username);
  if (before.at(-1) !== username) {
    await tx
      .insert(maasCredentialUses)
      .values({ siteId, path: site.path })
      .onConflictDoNothing({ target: maasCredentialUses.path });
    await tx
      .update(maasCredentialUses)
      .set({ userNames: [...formerly, username].slice(-NAMES_KEPT) })
      .where(eq(maasCredentialUses.path, site.path));
  }
  return formerly;
}

async function note(tx: Tx, place: Place, set: Readonly<Record<string, SQL | string>>): Promise<void> {
  await tx.insert(maasCredentialUses).values(place).onConflictDoNothing({ target: maasCredentialUses.path });
  await tx.update(maasCredentialUses).set(set).where(eq(maasCredentialUses.path, place.path));
}

export async function forgetCredentialFailures(tx: Tx, paths: readonly string[]): Promise<void> {
  if (paths.length === 0) return;
  await tx
    .update(maasCredentialUses)
    .set({ lastFailedAt: null, lastFailureCode: null, lastFailureMessage: null, userNames: [] })
    .where(inArray(maasCredentialUses.path, [...paths]));
}

export type CredentialKind = "maas_token" | "power" | "power_override";

export interface CredentialRecord {
  readonly siteId: SiteId;
  readonly kind: CredentialKind;
  readonly path: string;
  readonly overrideId: string | null;
  /** The hosts that the secret is for, for example `hostname c07u31`; null for a secret of the whole site. */
  readonly selector: string | null;
  /** The time from which the hub could use the secret, because somebody created, changed or enabled the secret. */
  readonly usableSince: Date;
  readonly lastUsedAt: Date | null;
  readonly lastWorkedAt: Date | null;
  readonly lastFailedAt: Date | null;
  readonly lastFailureCode: string | null;
  readonly lastFailureMessage: string | null;
  readonly warnedOf: "unused" | "failing" | null;
  readonly now: Date;
}

/** If a read from MAAS failed with a code in `TOKEN_ERRORS`, the cause was the site's MAAS token or the token's entry in the secret store. */
const TOKEN_ERRORS = ["unauthorized", "forbidden", "secret_missing", "secret_corrupt"];

/** Returns the secrets of all active sites, or of one active site: the MAAS token, the default BMC login, and each active override of a BMC login. */
export async function listCredentials(db: Db | Tx, only?: SiteId): Promise<CredentialRecord[]> {
  const { rows } = await db.execute<Record<string, string | null>>(sql`
    with sites as (
      select * from maas_sites where status = 'active' ${only === undefined ? sql`` : sql`and id = ${only}::uuid`}),
    secrets as (
      select o.site_id, 'power_override' as kind, o.vault_path as path, o.id as override_id,
        o.selector_type || ' ' || o.selector_value as selector, o.updated_at as usable_since,
        null::timestamptz as token_failed_at, null as token_error
      from maas_power_credential_overrides o join sites s on s.id = o.site_id where o.status = 'active'
      union all
      select s.id, 'power', s.default_power_creds_vault_path, null, null, s.created_at, null, null
      from sites s where s.default_power_creds_vault_path is not null
      union all
      select s.id, 'maas_token', s.api_token_vault_path, null, null, s.created_at, w.last_error_at, w.last_error_code
      from sites s left join maas_site_watches w on w.site_id = s.id and w.consecutive_failures > 0
        and w.last_error_code = any(${sql.param(TOKEN_ERRORS)}::text[])
      where s.api_token_vault_path is not null)
    select x.site_id, x.kind, x.path, x.override_id, x.selector, x.usable_since,
      u.last_used_at, u.last_worked_at, coalesce(x.token_failed_at, u.last_failed_at) as last_failed_at,
      coalesce(x.token_error, u.last_failure_code) as last_failure_code, u.last_failure_message, u.warned_of, now() as now
    from secrets x left join maas_credential_uses u on u.path = x.path
    order by x.site_id, x.kind, x.path`);
  return rows.map((row) => ({
    siteId: row["site_id"] as SiteId,
    kind: row["kind"] as CredentialKind,
    path: row["path"] ?? "",
    overrideId: row["override_id"] ?? null,
    selector: row["selector"] ?? null,
    usableSince: toDate(row["usable_since"]),
    lastUsedAt: toDateOrNull(row["last_used_at"]),
    lastWorkedAt: toDateOrNull(row["last_worked_at"]),
    lastFailedAt: toDateOrNull(row["last_failed_at"]),
    lastFailureCode: row["last_failure_code"] ?? null,
    lastFailureMessage: row["last_failure_message"] ?? null,
    warnedOf: (row["warned_of"] ?? null) as CredentialRecord["warnedOf"],
    now: toDate(row["now"]),
  }));
}

/** `noteWarning` returns false if a hub has already recorded a warning about the secret for the same reason. */
export async function noteWarning(tx: Tx, place: Place, reason: "unused" | "failing" | null): Promise<boolean> {
  await tx.insert(maasCredentialUses).values(place).onConflictDoNothing({ target: maasCredentialUses.path });
  const rows = await tx
    .update(maasCredentialUses)
    .set({ warnedOf: reason })
    .where(and(eq(maasCredentialUses.path, place.path), sql`${maasCredentialUses.warnedOf} is distinct from ${reason}`))
    .returning({ path: maasCredentialUses.path });
  return rows.length > 0;
}
