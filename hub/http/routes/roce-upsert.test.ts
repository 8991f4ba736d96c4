import { describe, expect, it } from "vitest";
import type { ParsedRoceRow } from "../../../shared/api/sites.ts";
import { planRoceUpsert } from "./roce-upsert.ts";

const row = (hostname: string, nic: string, address: string): ParsedRoceRow => ({
  row: { hostname, interface: nic, ipv4_cidr: `${address}/31` },
});
const kept = (hostname: string, nic: string, address: string) => ({
  id: `${hostname} ${nic}`,
  hostname,
  interface: nic,
  ipv4Cidr: `${address}/31`,
});
const outcomesOf = (...given: Parameters<typeof planRoceUpsert>) =>
  planRoceUpsert(...given).outcomes.map(({ outcome }) => outcome);

describe("an upsert of RoCE rows", () => {
  it("answers each row in its order, and writes only rows that change", () => {
    const { outcomes, changes } = planRoceUpsert(
      [row("a", "x", "10.0.0.1"), { fault: "hostname is odd" }, row("b", "x", "10.0.0.9"), row("c", "x", "10.0.0.5")],
      [kept("a", "x", "10.0.0.1"), kept("b", "x", "10.0.0.3")],
    );
    expect(outcomes).toEqual([
      { index: 0, outcome: "unchanged" },
      { index: 1, outcome: "failed", message: "hostname is odd" },
      { index: 2, outcome: "updated" },
      { index: 3, outcome: "created" },
    ]);
    expect(changes.map(({ row: one, replaces }) => [one.hostname, replaces])).toEqual([
      ["b", kept("b", "x", "10.0.0.3")],
      ["c", null],
    ]);
  });

  it("accepts the first of two rows for one interface or with one address", () => {
    const rows = [row("a", "x", "10.0.0.1"), row("a", "x", "10.0.0.3"), row("b", "x", "10.0.0.1")];
    expect(outcomesOf(rows, [])).toEqual(["created", "failed", "failed"]);
  });

  it("refuses an address that another interface keeps, with any prefix length", () => {
    const wide = { row: { hostname: "b", interface: "x", ipv4_cidr: "10.0.0.1/24" } };
    expect(outcomesOf([wide], [kept("a", "x", "10.0.0.1")])).toEqual(["failed"]);
    expect(outcomesOf([wide, row("a", "x", "10.0.0.1")], [kept("a", "x", "10.0.0.1")])).toEqual([
      "failed",
      "unchanged",
    ]);
  });

  it("lets rows exchange addresses, also in a ring", () => {
    const before = ["1", "3", "5"].map((end, n) => kept(`h${n}`, "x", `10.0.0.${end}`));
    const ring = [row("h0", "x", "10.0.0.3"), row("h1", "x", "10.0.0.5"), row("h2", "x", "10.0.0.1")];
    expect(outcomesOf(ring, before)).toEqual(["updated", "updated", "updated"]);
  });

  it("also refuses rows that wanted the address of a refused row, to the end of the chain", () => {
    const before = ["1", "3", "5", "7"].map((end, n) => kept(`h${n}`, "x", `10.0.0.${end}`));
    // Each of the hosts h0, h1 and h2 wants the address of the next host. Host h3 keeps its address, so none of h0, h1 and h2 can get the address
    // that it wants.
    const chain = [row("h0", "x", "10.0.0.3"), row("h1", "x", "10.0.0.5"), row("h2", "x", "10.0.0.7")];
    expect(outcomesOf(chain, before)).toEqual(["failed", "failed", "failed"]);
    expect(outcomesOf([...chain, row("h3", "x", "10.0.0.9")], before)).toEqual(Array(4).fill("updated"));
  });

  it("never writes one address twice, for every small request and table", () => {
    const places = ["a", "b", "c"];
    const choices = [null, "10.0.0.1", "10.0.0.3", "10.0.0.5"];
    const tables = places.reduce<(string | null)[][]>(
      (all, _) => all.flatMap((one) => choices.map((choice) => [...one, choice])),
      [[]],
    );
    const distinct = tables.filter((table) => {
      const set = table.filter((address) => address !== null);
      return new Set(set).size === set.length;
    });
    for (const table of distinct)
      for (const wanted of tables) {
        const before = places.flatMap((name, n) => (table[n] == null ? [] : [kept(name, "x", table[n])]));
        const rows = places.flatMap((name, n) => (wanted[n] == null ? [] : [row(name, "x", wanted[n])]));
        const { changes, outcomes } = planRoceUpsert(rows, before);
        const after = new Map(before.map((one) => [one.hostname, one.ipv4Cidr]));
        for (const { row: one } of changes) after.set(one.hostname, one.ipv4_cidr);
        expect(new Set(after.values()).size, JSON.stringify({ table, wanted })).toBe(after.size);
        expect(outcomes.length).toBe(rows.length);
      }
  });
});
