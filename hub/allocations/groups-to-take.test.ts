import { describe, expect, it } from "vitest";
import { NodeId } from "../../shared/ids.ts";
import { type FreeNode, groupsToTake } from "./groups-to-take.ts";

const id = (n: number) => NodeId.parse(`00000000-0000-4000-8000-${String(n).padStart(12, "0")}`);
const node = (n: number, rack: string | null, room: string | null = "hall"): FreeNode => ({ id: id(n), room, rack });
const numbers = (groups: readonly FreeNode[][]) => groups.map((group) => group.map((one) => Number(one.id.slice(-3))));

describe("the groups of a batch", () => {
  const FREE = [node(1, "a"), node(2, "b"), node(3, "a"), node(4, "a"), node(5, "b"), node(6, "c"), node(7, null)];

  it("are all nodes together, if the request does not ask for one rack", () => {
    expect(numbers(groupsToTake(FREE, 7, false))).toEqual([[1, 2, 3, 4, 5, 6, 7]]);
    expect(groupsToTake(FREE, 8, false)).toEqual([]);
  });

  it.each([
    [1, [[6], [2, 5], [1, 3, 4]]],
    [
      2,
      [
        [2, 5],
        [1, 3, 4],
      ],
    ],
    [3, [[1, 3, 4]]],
    [4, []],
  ])("are the racks with at least %i free nodes, the smallest that suffices first", (count, groups) => {
    expect(numbers(groupsToTake(FREE, count, true))).toEqual(groups);
  });

  it("of racks with one name in two rooms, or in no room, are not mixed", () => {
    const free = [node(1, "a"), node(2, "a", "cellar"), node(3, "a", null), node(4, "a", "cellar")];
    expect(numbers(groupsToTake(free, 1, true))).toEqual([[1], [3], [2, 4]]);
  });

  it("never have a node without a rack, however many there are", () => {
    expect(groupsToTake([node(1, null), node(2, null)], 1, true)).toEqual([]);
  });
});
