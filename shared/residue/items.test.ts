import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { RESIDUE_ITEMS } from "./items.ts";

describe("docs/residue.md", () => {
  const page = readFileSync(new URL("../../docs/residue.md", import.meta.url), "utf8");

  it("lists the items of the code in their order, with title, rule and what is read", () => {
    const rows = page.split("\n").flatMap((line) => {
      const cells = line.split("|").map((cell) => cell.trim());
      const item = /^`([a-z_]+)`$/.exec(cells[1] ?? "")?.[1];
      return cells.length === 6 && item !== undefined ? [[item, cells[2], cells[3], cells[4]]] : [];
    });
    expect(rows).toEqual(
      Object.entries(RESIDUE_ITEMS).map(([item, { title, rule, reads }]) => [item, title, `\`${rule}\``, reads]),
    );
  });
});
