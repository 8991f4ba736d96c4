/** The nodes that a person has chosen: some of the list by their ids, or all that match the filter, with the number that the person saw. */
export type Chosen =
  | { readonly kind: "some"; readonly ids: ReadonlyMap<string, string | null> }
  | { readonly kind: "all"; readonly count: number };

export const NOTHING: Chosen = { kind: "some", ids: new Map() };

export const sizeOf = (chosen: Chosen): number => (chosen.kind === "all" ? chosen.count : chosen.ids.size);

/** Adds nodes to the choice, or takes them out. A choice of all becomes one of the rows that are loaded as soon as a person takes one out. */
export function change(
  chosen: Chosen,
  loaded: ReadonlyMap<string, string | null>,
  keys: readonly string[],
  add: boolean,
): Chosen {
  if (chosen.kind === "all" && add) return chosen;
  const ids = new Map(chosen.kind === "all" ? loaded : chosen.ids);
  for (const key of keys) {
    if (add) ids.set(key, loaded.get(key) ?? null);
    else ids.delete(key);
  }
  return { kind: "some", ids };
}

/** One request for many nodes is for one site, so the choice is divided by sites. */
export interface SiteChoice {
  readonly siteId: string;
  readonly ids: readonly string[] | null;
  /** The number of nodes that the filter should match at the site; null if the nodes are named by their ids. */
  readonly expected: number | null;
}

export function bySite(
  chosen: Chosen,
  siteCounts: readonly { readonly value: string; readonly count: number }[],
): SiteChoice[] {
  if (chosen.kind === "all")
    return siteCounts.map(({ value, count }) => ({ siteId: value, ids: null, expected: count }));
  const groups = Map.groupBy(chosen.ids, ([, siteId]) => siteId);
  return [...groups].flatMap(([siteId, nodes]) =>
    siteId === null ? [] : [{ siteId, ids: nodes.map(([id]) => id), expected: null }],
  );
}
