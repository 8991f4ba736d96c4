import type { SiteId } from "../../../shared/ids.ts";
import { and, eq, type SQL, sql } from "../orm.ts";
import type { sshKeyGroups, sshKeys } from "../schema/index.ts";
import type { Reach } from "./reach.ts";

/**
 * The table of the tenants' stored SSH keys, or that of their SSH key groups; each row has a tenant and a name, and is valid for all sites or for
 * some.
 */
type Held = typeof sshKeys | typeof sshKeyGroups;

export interface HeldFilter {
  readonly ids?: readonly string[] | undefined;
  readonly tenant?: string | undefined;
  readonly name?: string | undefined;
  readonly siteId?: SiteId | undefined;
  readonly reach: Reach;
}

/**
 * A caller sees a stored SSH key or key group only if the caller may see all its sites, so only a caller without a limit of sites sees a key for
 * every site.
 */
export const matchesHeld = (t: Held, { ids, tenant, name, siteId, reach }: HeldFilter): SQL | undefined =>
  and(
    ids === undefined ? undefined : sql`${t.id} = any(${sql.param([...ids])}::uuid[])`,
    tenant === undefined ? undefined : eq(t.tenant, tenant),
    name === undefined ? undefined : eq(t.name, name),
    siteId === undefined ? undefined : sql`(${t.sites} is null or ${siteId}::uuid = any(${t.sites}))`,
    reach.sites === null ? undefined : sql`${t.sites} <@ ${sql.param([...reach.sites])}::uuid[]`,
    reach.tenant === null ? undefined : eq(t.tenant, reach.tenant),
  );

/** A page of stored keys or groups, sorted by tenant and name, begins after the last tenant and name of the previous page. */
export interface HeldPage {
  readonly after: readonly [string, string] | null;
  readonly limit: number;
}

export const isHeldAfter = (t: Held, after: HeldPage["after"]): SQL | undefined =>
  after === null ? undefined : sql`(${t.tenant}, ${t.name}) > (${after[0]}, ${after[1]})`;
