import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { RESIDUE_ITEMS } from "./items.ts";

/** The text for each rule in the table of docs/residue.md. */
const RULES = {
  same: "rule `same`: an entry added, changed or removed since the baseline is a finding",
  no_more: "rule `no_more`: an entry added or changed since the baseline is a finding",
  disks_stay:
    "rule `disks_stay`: an entry added or changed since the baseline, or the mount of a disk that is gone, is a finding",
  none: "rule `none`: each entry is a finding, with or without a baseline",
  tenant: "rule `tenant`: each entry of the tenant is a finding",
};

describe("docs/residue.md", () => {
  const page = readFileSync(new URL("../../docs/residue.md", import.meta.url), "utf8");

  it("lists the items of the code in their order, with title, rule and what is read", () => {
    const rows = page.split("\n").flatMap((line) => {
      const cells = line.split("|").map((cell) => cell.trim());
      const item = /^`([a-z_]+)`$/.exec(cells[1] ?? "")?.[1];
      return cells.length === 6 && item !== undefined ? [[item, cells[2], cells[3], cells[4]]] : [];
    });
    expect(rows).toEqual(
      Object.entries(RESIDUE_ITEMS).map(([item, { title, rule, reads }]) => [
        item,
        title,
        RULES[rule],
        `read: ${reads}`,
      ]),
    );
  });
});
