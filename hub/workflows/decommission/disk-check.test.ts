import { describe, expect, it } from "vitest";
import { buildRecord } from "../../../shared/sanitization-build.ts";
import { cleanFacts, release } from "../../../shared/sanitization-facts.fixture.ts";
import { FORBIDDEN } from "../../../shared/sanitization-sentences.ts";
import type { DiskSample, SampledDisk } from "../../../shared/tasks/sample-disks.ts";
import { compareDisks, comparedBlocks, diskStatement, findingsOf, mustChange, serialsOf } from "./disk-check.ts";

const GIB = 1024 ** 3;
const [A, B] = ["AAAAAAAAAAAAAAAA", "BBBBBBBBBBBBBBBB"];
const END = 0;
const MIDDLE = 100_000;
const disk = (serial: string | null, sample: Partial<DiskSample> | null = {}): SampledDisk => ({
  serial,
  model: "FAST SSD",
  wwn: null,
  bytes: GIB,
  holds_system: false,
  sample: sample && { zeros: 700, one_byte: 0, data: 4, unreadable: 0, prints: [], again: [], ...sample },
  detail: sample === null ? "mounted: sda1 is mounted. Unmount it first." : "",
});
const print = (block: number, digest: string) => ({ block, digest });
const BEFORE = { disks: [disk("S-1", { prints: [print(END, A), print(MIDDLE, A)] })], serials: ["S-1"] };
const shown = (...again: DiskSample["again"]) => [disk("S-1", { again })];

describe("the blocks that an erase must change", () => {
  it.each([
    ["none", 0, false],
    ["secure", 0, true],
    ["secure", MIDDLE, true],
    ["quick", 0, true],
    ["quick", 511, true],
    ["quick", 512, false],
    ["quick", MIDDLE, false],
    ["quick", GIB / 4096 - 513, false],
    ["quick", GIB / 4096 - 512, true],
    ["quick", GIB / 4096 - 1, true],
  ] as const)("%s, block %i: %s", (erase, block, must) => {
    expect(mustChange(erase, block, GIB)).toBe(must);
  });
});

describe("the disks after a reimage", () => {
  it.each([
    ["all blocks changed", "secure", shown(print(END, B), print(MIDDLE, B)), []],
    ["the middle is unchanged after secure", "secure", shown(print(END, B), print(MIDDLE, A)), ["1 of 2"]],
    ["the middle is unchanged after quick", "quick", shown(print(END, B), print(MIDDLE, A)), []],
    ["an end is unchanged after quick", "quick", shown(print(END, A), print(MIDDLE, A)), ["1 of 2"]],
    ["nothing was asked", "none", shown(print(END, A), print(MIDDLE, A)), []],
    ["the blocks are unreadable", "secure", shown(), ["none of the 2 blocks"]],
    ["the digest is of a block that nobody read before", "secure", shown(print(7, A)), ["none of the 2 blocks"]],
    ["the disk was not read", "secure", [disk("S-1", null)], ["mounted"]],
    ["the new system is on the disk", "secure", [{ ...disk("S-1", null), holds_system: true }], []],
    [
      "another disk was not read, of which nothing is known",
      "secure",
      [...shown(print(END, B)), disk("S-2", null)],
      [],
    ],
    ["the disk is gone", "secure", [disk("S-9")], ["does not show"]],
    ["the disk is gone, and nothing was asked", "none", [disk("S-9")], []],
  ] as const)("%s", (_what, erase, disks, findings) => {
    const check = compareDisks(erase, BEFORE, disks);
    expect(findingsOf(erase, check)).toEqual(
      findings.map((one) => expect.objectContaining({ text: expect.stringContaining(one) })),
    );
  });

  describe("after a tenant with the rights of root, who can invent what the earlier system reports", () => {
    const ROOT = { grantsRoot: true, rootBy: [] };
    const blank = { data: 0, again: [print(END, B)] };
    it.each<[string, Parameters<typeof comparedBlocks>[1], "secure" | "quick", Partial<DiskSample>, object]>([
      ["no root", { grantsRoot: false, rootBy: [] }, "secure", {}, { blocks_compared: 1 }],
      ["no tenant", null, "secure", {}, { blocks_compared: 1 }],
      ["granted root", ROOT, "secure", {}, { blocks_doubted: 1 }],
      ["another way to root", { grantsRoot: false, rootBy: ["group docker"] }, "secure", {}, { blocks_doubted: 1 }],
      ["root, all blocks blank", ROOT, "secure", blank, { blocks_doubted: 1, disks_blank: 1 }],
      ["root, one byte", ROOT, "secure", { ...blank, zeros: 0, one_byte: 9 }, { blocks_doubted: 1, disks_blank: 1 }],
      ["root, all blocks blank after quick", ROOT, "quick", blank, { blocks_doubted: 1 }],
      ["root, an unreadable block", ROOT, "secure", { ...blank, unreadable: 1 }, { blocks_doubted: 1 }],
      ["root, nothing read", ROOT, "secure", { ...blank, zeros: 0 }, { blocks_doubted: 1 }],
      ["root, nothing compared", ROOT, "secure", { data: 0, again: [] }, { disks_blank: 1 }],
    ])("%s", (_what, tenancy, erase, sample, told) => {
      const check = compareDisks(erase, BEFORE, [disk("S-1", { again: [print(END, B)], ...sample })]);
      expect(comparedBlocks(check, tenancy)).toEqual(told);
    });

    it("one disk with other content is enough for a doubt, and a disk that was not read says nothing", () => {
      const of = (...disks: SampledDisk[]) => compareDisks("secure", BEFORE, disks).blank;
      expect(of(disk("S-1", { data: 0 }), disk("S-2", null))).toBe(1);
      expect(of(disk("S-1", { data: 0 }), disk("S-2", { data: 1 }))).toBe(0);
      expect(of(disk("S-1", null))).toBe(0);
    });
  });

  it("are named if they are missing or new, and a disk of the baseline counts as known", () => {
    const check = compareDisks("secure", { disks: [disk("S-1")], serials: ["S-2"] }, [
      disk("S-2"),
      disk("S-3"),
      disk(null),
    ]);
    expect([serialsOf(check, "missing"), check.added]).toEqual([["S-1"], ["S-3"]]);
    expect(compareDisks("secure", { disks: [], serials: [] }, [disk("S-3")]).added).toEqual([]);
  });

  it("stand in the record with what was read, and only unchanged blocks speak against the erase", () => {
    const facts = (findings: readonly string[], waived_by: string | null) => {
      const check = compareDisks("secure", BEFORE, shown(print(END, A), print(MIDDLE, B)));
      const evidence = findings.length === 0 ? "reported_by_maas" : "none";
      const person = waived_by === null ? {} : { disks_waived_by: waived_by };
      const told = findings.length === 0 ? {} : { disk_findings: [...findings], ...person };
      return cleanFacts({
        trust: "reimaged",
        release: { ...release({ evidence }), ...told },
        known_media: [{ kind: "disk", model: "FAST SSD", serial: "S-1" }],
        disk_samples: [...check.samples, { ...check.samples[0], serial: "S-7", model: null } as never],
        statements: [diskStatement(check)],
      });
    };
    const { record } = buildRecord(facts([], null));
    expect([record.verdict, record.media.map(({ serial, method }) => [serial, method])]).toEqual([
      "clean",
      [
        ["S-1", "none"],
        ["S-7", "none"],
      ],
    ]);
    expect(record.media[0]).toMatchObject({
      technique: "erase of kind secure",
      verification: "random blocks, read after the deploy",
      verification_result:
        "700 blocks of zeros, 0 of one other byte, 4 with other content, 0 unreadable; 1 of 2 blocks as before the release",
    });
    expect(record.claims.join()).toContain("1 disks with an unchanged block");
    expect(record.claims.join()).not.toMatch(FORBIDDEN);
    const codes = (person: string | null) => {
      const { verdict, reasons } = buildRecord(facts(["disk S-1: 1 of 2"], person)).record;
      return [verdict, reasons.map(({ code }) => code)];
    };
    expect(codes(null)).toEqual(["not_clean", ["erase_disproved"]]);
    expect(codes("ann")).toEqual(["not_clean", ["erase_disproved", "erase_waived"]]);
  });
});
