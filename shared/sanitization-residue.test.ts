import { describe, expect, it } from "vitest";
import { compareResidue } from "./residue/compare.ts";
import { RESIDUE_ITEM_NAMES } from "./residue/items.ts";
import type { ResidueSnapshot } from "./residue/snapshot.ts";
import { buildRecord } from "./sanitization-build.ts";
import { cleanFacts } from "./sanitization-facts.fixture.ts";
import { recordResidue } from "./sanitization-residue.ts";

const digest = "A".repeat(16);
const empty: ResidueSnapshot = Object.fromEntries(RESIDUE_ITEM_NAMES.map((item) => [item, { entries: [] }]));
const residueOf = (baseline: ResidueSnapshot | null, snapshot: ResidueSnapshot) =>
  buildRecord(cleanFacts({ residue: recordResidue(compareResidue(baseline, snapshot, null), baseline !== null) }))
    .record;

describe("the residue in a record", () => {
  it("has every item, and the same verdict as the comparison", () => {
    const { residue, verdict } = residueOf(empty, empty);
    expect(residue?.items.map(({ item }) => item)).toEqual([...RESIDUE_ITEM_NAMES]);
    expect([residue?.verdict, verdict]).toEqual(["clean", "clean"]);
  });

  it("names what was found, counts what is not named, and says why an item is unreadable", () => {
    const many = Array.from({ length: 50 }, (_, n) => ({ name: `unit ${n}`, digest }));
    const { residue, verdict } = residueOf(empty, {
      ...empty,
      accounts: { entries: many },
      authorized_keys: { unreadable: "the disk is gone" },
    });
    expect(residue).toMatchObject({ verdict: "found" });
    const [accounts, keys] = ["accounts", "authorized_keys"].map((name) =>
      residue?.items.find(({ item }) => item === name),
    );
    expect(accounts).toMatchObject({ status: "found", more: 30 });
    expect(accounts?.names).toContain("added: unit 3");
    expect(keys).toMatchObject({ status: "unreadable", names: [], reason: "the disk is gone" });
    expect(verdict).toBe("not_clean");
  });

  it("of a node without a baseline is never clean", () => {
    expect(residueOf(null, empty).verdict).not.toBe("clean");
  });
});
