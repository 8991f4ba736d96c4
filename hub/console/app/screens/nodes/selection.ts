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

/** What the facets of the list say: how many nodes match, and how many of them each site has. */
export interface SiteCounts {
  readonly total: number;
  readonly facets: {
    readonly site_id: {
      readonly values: readonly { readonly value: string; readonly count: number }[];
      /** The number of sites that `values` leaves out. */
      readonly more: number;
    };
  };
}

/** The requests that a choice needs, or why the console cannot make them. */
export type Division =
  | { readonly choices: readonly SiteChoice[]; readonly refusal: null }
  | { readonly choices: readonly []; readonly refusal: string };

const divided = (choices: readonly SiteChoice[]): Division => ({ choices, refusal: null });
const refused = (refusal: string): Division => ({ choices: [], refusal });

/** Divides a choice by sites. The counts of the sites ignore the filter for a site, so with that filter only its own site counts. */
export function bySite(chosen: Chosen, counts: SiteCounts | undefined, filteredSite: string | undefined): Division {
  if (chosen.kind === "all") {
    if (counts === undefined) return refused("The number of nodes is not known yet. Try again.");
    if (filteredSite !== undefined) return divided([{ siteId: filteredSite, ids: null, expected: counts.total }]);
    const { values, more } = counts.facets.site_id;
    if (more > 0) return refused("The filter matches nodes of too many sites. Choose a site in the filter first.");
    return divided(values.map(({ value, count }) => ({ siteId: value, ids: null, expected: count })));
  }
  const groups = Map.groupBy(chosen.ids, ([, siteId]) => siteId);
  return divided(
    [...groups].flatMap(([siteId, nodes]) =>
      siteId === null ? [] : [{ siteId, ids: nodes.map(([id]) => id), expected: null }],
    ),
  );
}

/**
 * Returns the choices of the next request: those of the preview that the person looks at, with its numbers, or else the present ones. An event may
 * change the present ones while the person reads.
 */
export const choicesOf = (
  previewed: readonly { readonly choice: SiteChoice }[] | null,
  present: readonly SiteChoice[],
): readonly SiteChoice[] => (previewed === null ? present : previewed.map(({ choice }) => choice));
