import type { SiteId } from "../../../shared/ids.ts";
import { and, asc, eq, gt, type SQL, sql } from "../orm.ts";
import {
  type MaasPowerCredentialOverride,
  maasCredentialUses,
  maasPowerCredentialOverrides,
  maasSites,
} from "../schema/index.ts";
import { toDate } from "../timestamp.ts";
import type { Db, Tx } from "../tx.ts";
import type { CredentialRecord } from "./credential-uses.ts";
import { given, isVersion } from "./row-versions.ts";

export interface PowerOverrideRow {
  readonly override: MaasPowerCredentialOverride;
  readonly use: CredentialRecord;
  /** True if an onboarding could choose the BMC login override, because the override and its site are active. */
  readonly inUse: boolean;
  readonly version: string;
}

export const pageOfPowerOverrides = (
  db: Db | Tx,
  siteId: SiteId,
  page: { readonly after: string | null; readonly most: number },
): Promise<PowerOverrideRow[]> => {
  const t = maasPowerCredentialOverrides;
  const behind = page.after === null ? undefined : gt(sql`${t.id}::text`, page.after);
  return select(db, and(eq(t.siteId, siteId), behind), page.most);
};

export async function findPowerOverride(db: Db | Tx, siteId: SiteId, id: string): Promise<PowerOverrideRow | null> {
  const t = maasPowerCredentialOverrides;
  const [row] = await select(db, and(eq(t.siteId, siteId), eq(t.id, id)), 1);
  return row ?? null;
}

/** PostgreSQL reports an error if the site already has a BMC login override for the selector. */
export async function insertPowerOverride(
  tx: Tx,
  row: Pick<MaasPowerCredentialOverride, "id" | "siteId" | "selectorType" | "selectorValue" | "vaultPath">,
): Promise<void> {
  await tx.insert(maasPowerCredentialOverrides).values(row);
}

/** `touchPowerOverride` gives a BMC login override a new version, or returns false if the row no longer has the version `version`. */
export async function touchPowerOverride(db: Db, id: string, version: string): Promise<boolean> {
  const t = maasPowerCredentialOverrides;
  const rows = await db
    .update(t)
    .set({ updatedAt: sql`now()` })
    .where(and(eq(t.id, id), isVersion(version)))
    .returning({ id: t.id });
  return rows.length > 0;
}

export async function changePowerOverride(
  tx: Tx,
  siteId: SiteId,
  id: string,
  change: { readonly status: MaasPowerCredentialOverride["status"] | undefined },
): Promise<MaasPowerCredentialOverride | null> {
  const t = maasPowerCredentialOverrides;
  const [row] = await tx
    .update(t)
    .set({ ...given(change), updatedAt: sql`now()` })
    .where(and(eq(t.id, id), eq(t.siteId, siteId)))
    .returning();
  return row ?? null;
}

/** Disabling a BMC login override gives its row a new version, so that an older request to change the row fails. */
export async function disablePowerOverride(db: Db | Tx, id: string): Promise<void> {
  await db
    .update(maasPowerCredentialOverrides)
    .set({ status: "disabled", updatedAt: sql`now()` })
    .where(eq(maasPowerCredentialOverrides.id, id));
}

async function select(db: Db | Tx, where: SQL | undefined, most: number): Promise<PowerOverrideRow[]> {
  const t = maasPowerCredentialOverrides;
  const rows = await db
    .select({
      override: t,
      use: maasCredentialUses,
      siteStatus: maasSites.status,
      version: sql<string>`${t}.xmin::text`,
      now: sql<string>`now()`,
    })
    .from(t)
    .innerJoin(maasSites, eq(maasSites.id, t.siteId))
    .leftJoin(maasCredentialUses, eq(maasCredentialUses.path, t.vaultPath))
    .where(where)
    .orderBy(asc(sql`${t.id}::text`))
    .limit(most);
  return rows.map(({ override, use, siteStatus, version, now }) => ({
    override,
    inUse: siteStatus === "active" && override.status === "active",
    version,
    use: {
      siteId: override.siteId,
      kind: "power_override",
      path: override.vaultPath,
      overrideId: override.id,
      selector: `${override.selectorType} ${override.selectorValue}`,
      usableSince: override.updatedAt,
      lastUsedAt: use?.lastUsedAt ?? null,
      lastWorkedAt: use?.lastWorkedAt ?? null,
      lastFailedAt: use?.lastFailedAt ?? null,
      lastFailureCode: use?.lastFailureCode ?? null,
      lastFailureMessage: use?.lastFailureMessage ?? null,
      warnedOf: use?.warnedOf ?? null,
      now: toDate(now),
    },
  }));
}

export async function listPowerOverrides(db: Db, siteId: SiteId): Promise<MaasPowerCredentialOverride[]> {
  return db
    .select()
    .from(maasPowerCredentialOverrides)
    .where(and(eq(maasPowerCredentialOverrides.siteId, siteId), eq(maasPowerCredentialOverrides.status, "active")));
}
