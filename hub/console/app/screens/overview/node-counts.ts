import type { Overview } from "./overview-question.ts";

type Groups = Overview["nodes"];
type Status = Groups[number]["status"];

/** The order in which every chart and table of the overview shows node statuses: the order of a node's life. */
const STATUS_ORDER = [
  "active",
  "enrolling",
  "bootstrap_issued",
  "draining",
  "removing",
  "offline",
  "quarantined",
  "retired",
  "deleted",
] as const satisfies readonly Status[];

export interface StatusCount {
  readonly status: Status;
  readonly count: number;
}

/** Sums up the numbers of nodes by status, and leaves out the statuses that no node has. */
export const byStatus = (groups: Groups): StatusCount[] =>
  STATUS_ORDER.map((status) => ({ status, count: sum(groups.filter((one) => one.status === status)) })).filter(
    ({ count }) => count > 0,
  );

export const sum = (groups: Groups): number => groups.reduce((total, { count }) => total + count, 0);
export const schedulable = (groups: Groups): number => groups.reduce((total, one) => total + one.schedulable, 0);

export interface PlaceCount {
  readonly key: string;
  readonly siteId: string | null;
  readonly skuId: string;
  readonly groups: Groups;
}

/** Groups the numbers of nodes by site and SKU, the largest group first. */
export const byPlace = (groups: Groups): PlaceCount[] =>
  [...Map.groupBy(groups, ({ site_id, sku_id }) => `${site_id ?? ""} ${sku_id}`)]
    .flatMap(([key, [first, ...rest]]) =>
      first === undefined ? [] : [{ key, siteId: first.site_id, skuId: first.sku_id, groups: [first, ...rest] }],
    )
    .sort((a, b) => sum(b.groups) - sum(a.groups) || a.key.localeCompare(b.key));
