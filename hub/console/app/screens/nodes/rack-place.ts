/** What the counts of the filters say about sites and rooms. */
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
  /** Set for the nodes of a site that are in no room. */
  readonly no_room?: "true" | undefined;
}

/** What a person has to choose before racks are shown. `without` is the number of nodes without a site or room, null if it is not known. */
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

/** Says whether the address names the racks that are shown. */
export const isPlace = ({ site_id: site, room, no_room: roomless }: Named): boolean =>
  site !== undefined && (room !== undefined || roomless !== undefined);

/**
 * The racks of one room are shown, or the nodes of a site that are in no room. So no fleet is ever loaded, and racks of one name in two rooms are not
 * mixed. `only` is the place of a site without another one, and `empty` a filter that matches no node of the site.
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

/** Cuts a page in the order of the locations, which begins with the nodes without a room, where the first room begins. */
export function withoutRooms<Row extends { readonly location: { readonly room: string | null } }>(page: {
  readonly items: readonly Row[];
  readonly next_cursor: string | null;
}): { readonly items: readonly Row[]; readonly next_cursor: string | null } {
  const end = page.items.findIndex(({ location }) => location.room !== null);
  return end < 0 ? page : { items: page.items.slice(0, end), next_cursor: null };
}
