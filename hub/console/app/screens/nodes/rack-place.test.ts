import { describe, expect, it } from "vitest";
import { isPlace, placeToChoose, withoutRooms } from "./rack-place.ts";

type Values = readonly (readonly [string, number])[];
const countsOf = (
  total: number,
  { sites = [], rooms = [], more = 0 }: { sites?: Values; rooms?: Values; more?: number },
) => {
  const counted = (values: Values) => ({ values: values.map(([value, count]) => ({ value, count })), more });
  return { total, facets: { site_id: counted(sites), room: counted(rooms) } };
};

describe("the place whose racks are shown", () => {
  it("is a site at first, whatever else the address names", () => {
    const counts = countsOf(5, { sites: [["s1", 3]], rooms: [["A", 5]] });
    expect(placeToChoose({ room: "A" }, counts)).toMatchObject({ kind: "site", without: 2, values: [{ value: "s1" }] });
  });

  it.each([
    ["a site without rooms", countsOf(5, {}), { kind: "only", place: { no_room: "true" } }],
    ["a site with one room for all", countsOf(5, { rooms: [["A", 5]] }), { kind: "only", place: { room: "A" } }],
    ["a site with one room for some", countsOf(5, { rooms: [["A", 4]] }), { kind: "room", without: 1 }],
    [
      "a site with two rooms",
      countsOf(5, {
        rooms: [
          ["A", 4],
          ["B", 1],
        ],
      }),
      { kind: "room", without: 0 },
    ],
    ["a site with more rooms than the answer names", countsOf(5, { rooms: [["A", 5]], more: 1 }), { kind: "room" }],
    ["a filter that matches nothing", countsOf(0, {}), { kind: "empty" }],
  ])("of %s", (_, counts, place) => {
    expect(placeToChoose({ site_id: "s1" }, counts)).toMatchObject(place);
  });

  it("needs no counts if the address names it", () => {
    expect(isPlace({ site_id: "s1", room: "A" })).toBe(true);
    expect(isPlace({ site_id: "s1", no_room: "true" })).toBe(true);
    expect(isPlace({ site_id: "s1" })).toBe(false);
    expect(isPlace({ room: "A" })).toBe(false);
  });

  it("counts the nodes without a room only if it knows all rooms", () => {
    const rooms: Values = [
      ["A", 4],
      ["B", 3],
    ];
    expect(placeToChoose({ site_id: "s1" }, countsOf(9, { rooms }))).toMatchObject({ without: 2 });
    expect(placeToChoose({ site_id: "s1" }, countsOf(9, { rooms, more: 1 }))).toMatchObject({ without: null, more: 1 });
  });
});

describe("the nodes without a room", () => {
  const row = (room: string | null) => ({ location: { room } });
  it("end where the first room begins", () => {
    expect(withoutRooms({ items: [row(null), row("A"), row(null)], next_cursor: "more" })).toEqual({
      items: [row(null)],
      next_cursor: null,
    });
    const all = { items: [row(null), row(null)], next_cursor: "more" };
    expect(withoutRooms(all)).toBe(all);
    expect(withoutRooms({ items: [row("A")], next_cursor: null }).items).toEqual([]);
  });
});
