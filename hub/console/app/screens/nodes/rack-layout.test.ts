import { describe, expect, it } from "vitest";
import { type Located, racksOf as racksAt } from "./rack-layout.ts";

const node = (
  id: string,
  rack: string | null,
  unit: number | null,
  more: Partial<Located> & { room?: string } = {},
) => ({
  id,
  status: more.status ?? "active",
  location: { room: more.room ?? null, rack, unit },
});
const racksOf = (rows: Located[]) =>
  racksAt(
    rows,
    rows.map(() => 1),
  );
const slotsOf = (...rows: Located[]) =>
  racksOf(rows)[0]?.slots.map((slot) =>
    slot.kind === "gap"
      ? `${slot.top}-${slot.bottom} free`
      : `${slot.unit} ${slot.nodes.map(({ id }) => id)}${slot.isContested ? " contested" : ""}`,
  );

describe("a rack", () => {
  it("has its units from top to bottom, with the runs between the nodes", () => {
    expect(slotsOf(node("a", "r1", 1), node("b", "r1", 2), node("c", "r1", 40))).toEqual([
      "42-41 free",
      "40 c",
      "39-3 free",
      "2 b",
      "1 a",
    ]);
    expect(slotsOf(node("a", "r1", 42), node("b", "r1", 2))).toEqual(["42 a", "41-3 free", "2 b", "1-1 free"]);
  });

  it("is as high as its highest node, and at least as the usual rack", () => {
    expect(racksOf([node("a", "r1", 3)])[0]?.height).toBe(42);
    expect(racksOf([node("a", "r1", 48)])[0]?.height).toBe(48);
    expect(slotsOf(node("a", "r1", 48))).toEqual(["48 a", "47-1 free"]);
  });

  it("shows both nodes that claim one unit, and marks the unit", () => {
    expect(slotsOf(node("a", "r1", 42), node("b", "r1", 42))).toEqual(["42 a,b contested", "41-1 free"]);
  });

  it("shows a deleted node beside its successor, which has the unit for itself", () => {
    const deleted = node("old", "r1", 42, { status: "deleted" });
    expect(slotsOf(deleted, node("new", "r1", 42))).toEqual(["42 old,new", "41-1 free"]);
  });

  it("knows which rows of the list are in it, and counts each node once", () => {
    const rows = [node("a", "r1", 1), node("b", "r1", 9), node("c", "r2", 1), node("b", "r1", 8)];
    expect(racksOf(rows)).toMatchObject([
      { name: "r1", nodes: 2, first: 0, last: 1 },
      { name: "r2", nodes: 1, first: 2, last: 2 },
    ]);
  });

  it("has a node that has moved between two pages where the page that was answered last has it", () => {
    const rows = [node("a", "r1", 1), node("b", "r1", 9), node("b", "r2", 8)];
    expect(racksAt(rows, [1, 1, 2])).toMatchObject([
      { name: "r1", nodes: 1 },
      { name: "r2", nodes: 1 },
    ]);
    expect(racksAt(rows, [2, 2, 1])).toMatchObject([{ name: "r1", nodes: 2 }]);
  });

  it("is another one in another room, and has no node without a place", () => {
    const rows = [node("x", null, null), node("y", "r1", null), node("a", "r1", 1), node("b", "r1", 1, { room: "B" })];
    expect(racksOf(rows)).toMatchObject([
      { name: "r1", room: null, nodes: 1, first: 2 },
      { name: "r1", room: "B", nodes: 1, first: 3 },
    ]);
    expect(new Set(racksOf(rows).map(({ key }) => key)).size).toBe(2);
    expect(racksOf([])).toEqual([]);
  });
});
