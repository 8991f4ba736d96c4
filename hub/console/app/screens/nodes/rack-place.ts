/** The numbers of nodes for each site and each room, from the hub's filter counts. */
interface Counts {
  readonly total: number;
  readonly facets: Readonly<Record<"site_id" | "room", Counted>>;
}
interface Counted {
  readonly values: readonly { readonly value: string; readonly count: number }[];
  readonly more: number;
}

/** Which place the address names. */
interface Named {
  readonly site_id?: string | undefined;
  readonly room?: string | undefined;
  /** Set if the rack view shows the nodes of a site that are in no room. */
  readonly no_room?: "true" | undefined;
}

/**
 * The sites or rooms among which a person must choose before racks are drawn. `without` is the number of nodes without a site or room; null if it is
 * unknown.
 */
export interface Choices {
  readonly kind: "site" | "room";
  readonly values: Counted["values"];
  readonly more: number;
  readonly without: number | null;
}

export type PlaceChoice =
  | Choices
  | { readonly kind: "only"; readonly place: { readonly room: string } | { readonly no_room: "true" } }
  | { readonly kind: "empty" };

const choiceOf = (kind: "site" | "room", { values, more }: Counted, total: number): Choices => ({
  kind,
  values,
  more,
  without: more > 0 ? null : total - values.reduce((sum, { count }) => sum + count, 0),
});

/** Says whether the URL already names a site and a room (or the nodes without a room), so that racks can be drawn. */
export const isPlace = ({ site_id: site, room, no_room: roomless }: Named): boolean =>
  site !== undefined && (room !== undefined || roomless !== undefined);

/**
 * The rack view shows either the racks of one room, or the nodes of a site that are in no room. Because the rack view shows only one room at a time,
 * it never loads a whole fleet, and never mixes racks of two rooms that have the same name. `only` means that the site has only one room (or only
 * nodes without one), and `empty` that no node of the site matches the filter.
 */
export function placeToChoose({ site_id: site }: Named, { total, facets }: Counts): PlaceChoice {
  if (site === undefined) return choiceOf("site", facets.site_id, total);
  const { values, more } = facets.room;
  const [first] = values;
  if (first === undefined) return total === 0 ? { kind: "empty" } : { kind: "only", place: { no_room: "true" } };
  const choice = choiceOf("room", facets.room, total);
  const isWhole = values.length + more === 1 && choice.without === 0;
  return isWhole ? { kind: "only", place: { room: first.value } } : choice;
}

/** Keeps only the nodes without a room, with which a page of nodes sorted by location begins. */
export function withoutRooms<Row extends { readonly location: { readonly room: string | null } }>(page: {
  readonly items: readonly Row[];
  readonly next_cursor: string | null;
}): { readonly items: readonly Row[]; readonly next_cursor: string | null } {
  const end = page.items.findIndex(({ location }) => location.room !== null);
  return end < 0 ? page : { items: page.items.slice(0, end), next_cursor: null };
}
