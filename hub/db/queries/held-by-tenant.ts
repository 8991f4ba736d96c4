import type { SiteId } from "../../../shared/ids.ts";
import { and, eq, type SQL, sql } from "../orm.ts";
import type { sshKeyGroups, sshKeys } from "../schema/index.ts";
import type { Reach } from "./reach.ts";

/** A table of what tenants have under names, each row for all sites or for some. */
type Held = typeof sshKeys | typeof sshKeyGroups;

export interface HeldFilter {
  readonly ids?: readonly string[] | undefined;
  readonly tenant?: string | undefined;
  readonly name?: string | undefined;
  readonly siteId?: SiteId | undefined;
  readonly reach: Reach;
}

/** All sites of a key or group must be within the caller's reach, so a key for every site is only within the reach of a caller for every site. */
export const matchesHeld = (t: Held, { ids, tenant, name, siteId, reach }: HeldFilter): SQL | undefined =>
  and(
    ids === undefined ? undefined : sql`${t.id} = any(${sql.param([...ids])}::uuid[])`,
    tenant === undefined ? undefined : eq(t.tenant, tenant),
    name === undefined ? undefined : eq(t.name, name),
    siteId === undefined ? undefined : sql`(${t.sites} is null or ${siteId}::uuid = any(${t.sites}))`,
    reach.sites === null ? undefined : sql`${t.sites} <@ ${sql.param([...reach.sites])}::uuid[]`,
    reach.tenant === null ? undefined : eq(t.tenant, reach.tenant),
  );

/** A page of a list by tenant and name begins after the tenant and name of the page before. */
export interface HeldPage {
  readonly after: readonly [string, string] | null;
  readonly limit: number;
}

export const isHeldAfter = (t: Held, after: HeldPage["after"]): SQL | undefined =>
  after === null ? undefined : sql`(${t.tenant}, ${t.name}) > (${after[0]}, ${after[1]})`;
