/**
 * The nodes that a person has selected: some nodes of the list by their ids, or all nodes that match the filter, with the number that the person saw.
 */
export type Chosen =
  | { readonly kind: "some"; readonly ids: ReadonlyMap<string, string | null> }
  | { readonly kind: "all"; readonly count: number };

export const NOTHING: Chosen = { kind: "some", ids: new Map() };

export const sizeOf = (chosen: Chosen): number => (chosen.kind === "all" ? chosen.count : chosen.ids.size);

/**
 * Adds nodes to the selection, or removes them from it. When a person deselects one node of a selection of all nodes, the selection becomes the
 * loaded rows without that node.
 */
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

/** A request for many nodes is for one site only, so the selection is divided by site. */
export interface SiteChoice {
  readonly siteId: string;
  readonly ids: readonly string[] | null;
  /** The number of nodes that the filter should match at the site; null if the request names the nodes by their ids. */
  readonly expected: number | null;
}

/** The counts of the node list's filters: how many nodes match the filter, and how many of them each site has. */
export interface SiteCounts {
  readonly total: number;
  readonly facets: {
    readonly site_id: {
      readonly values: readonly { readonly value: string; readonly count: number }[];
      /** The number of sites that `values` omits. */
      readonly more: number;
    };
  };
}

/** The requests that a selection of nodes needs, or the reason why the console cannot make them. */
export type Division =
  | { readonly choices: readonly SiteChoice[]; readonly refusal: null }
  | { readonly choices: readonly []; readonly refusal: string };

const divided = (choices: readonly SiteChoice[]): Division => ({ choices, refusal: null });
const refused = (refusal: string): Division => ({ choices: [], refusal });

/**
 * Divides a choice by sites. The node counts of the sites ignore the filter by site, so with that filter only the count of the filtered site is used.
 */
export function bySite(chosen: Chosen, counts: SiteCounts | undefined, filteredSite: string | undefined): Division {
  if (chosen.kind === "all") {
    if (counts === undefined) return refused("The number of nodes is not known yet. Try again.");
    if (filteredSite !== undefined) return divided([{ siteId: filteredSite, ids: null, expected: counts.total }]);
    const { values, more } = counts.facets.site_id;
    if (more > 0) return refused("The filter matches nodes of too many sites. Choose a site in the filter first.");
    return divided(values.map(({ value, count }) => ({ siteId: value, ids: null, expected: count })));
  }
  const groups = Map.groupBy(chosen.ids, ([, siteId]) => siteId);
  const ofNoSite = groups.get(null)?.length ?? 0;
  if (ofNoSite > 0)
    return refused(`${ofNoSite} of the chosen nodes belong to no site, and a request is for one site. Leave them out.`);
  return divided(
    [...groups].flatMap(([siteId, nodes]) =>
      siteId === null ? [] : [{ siteId, ids: nodes.map(([id]) => id), expected: null }],
    ),
  );
}

/**
 * Returns which nodes of each site the next request is for: the nodes and numbers of the preview that the person sees, or the present selection if
 * there is no preview. An event may change the numbers of selected nodes while the person reads the preview.
 */
export const choicesOf = (
  previewed: readonly { readonly choice: SiteChoice }[] | null,
  present: readonly SiteChoice[],
): readonly SiteChoice[] => (previewed === null ? present : previewed.map(({ choice }) => choice));
