import { describe, expect, it } from "vitest";
import { withoutWekaLines } from "./weka-fstab.ts";

const PREFIXES = ["/mnt/weka", "/data"];

describe("the removal of Weka's lines from fstab", () => {
  it.each<[string, string, number, number]>([
    ["a line below a prefix", "weka/fs /mnt/weka/a wekafs net=x 0 0", 1, 0],
    ["a line at a prefix", "weka/fs\t/data wekafs defaults 0 0", 1, 0],
    ["a line beside a prefix", "weka/fs /mnt/weka2 wekafs defaults 0 0", 0, 1],
    ["a line that leaves a prefix", "weka/fs /mnt/weka/../x wekafs defaults 0 0", 0, 1],
    ["another file system below a prefix", "/dev/sdb /mnt/weka/a ext4 defaults 0 0", 0, 0],
    ["a comment", "# weka/fs /mnt/weka/a wekafs net=x 0 0", 0, 0],
    ["an empty line", "", 0, 0],
  ])("%s", (_what, line, removed, kept) => {
    const before = `UUID=1 / ext4 defaults 0 1\n${line}\n\n# end`;
    const edit = withoutWekaLines(before.replaceAll("\\\t", "\t"), PREFIXES);
    expect([edit.removed, edit.kept]).toEqual([removed, kept]);
    expect(edit.text).toBe(removed === 0 ? before : "UUID=1 / ext4 defaults 0 1\n\n# end");
  });

  it("removes nothing without a prefix", () => {
    expect(withoutWekaLines("w/f /mnt/weka wekafs x 0 0", [])).toMatchObject({ removed: 0, kept: 1 });
  });
});
