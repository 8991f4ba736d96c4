import { describe, expect, it } from "vitest";
import { PURGE_METHODS } from "../../shared/purge-techniques.ts";
import {
  BLOCK_BYTES,
  type BlockLook,
  drawBlocks,
  END_BLOCKS,
  judgeSample,
  lookAt,
  markerOf,
  RANDOM_BLOCKS,
} from "./purge-sample.ts";
import { TECHNIQUE_NAMES, TECHNIQUES } from "./purge-technique.ts";

describe("the techniques of the agent", () => {
  it("are those that the hub accepts, each with the class that the hub expects", () => {
    expect(Object.values(TECHNIQUES).map(({ title, method }) => [title, method])).toEqual(
      Object.entries(PURGE_METHODS),
    );
  });
});

describe("the sample of a purge", () => {
  it("has both ends of the disk and random blocks, the same for the same seed", () => {
    const blocks = 937_684_566;
    const drawn = drawBlocks("seed", blocks);
    expect(drawn).toHaveLength(2 * END_BLOCKS + RANDOM_BLOCKS);
    expect(new Set(drawn).size).toBe(drawn.length);
    expect([drawn[0], drawn[END_BLOCKS - 1], drawn.at(-END_BLOCKS), drawn.at(-1)]).toEqual([
      0,
      END_BLOCKS - 1,
      blocks - END_BLOCKS,
      blocks - 1,
    ]);
    expect(drawBlocks("seed", blocks)).toEqual(drawn);
    expect(drawBlocks("other", blocks)).not.toEqual(drawn);
    for (let quarter = 0; quarter < 4; quarter += 1) {
      const inQuarter = drawn.filter((block) => Math.floor((4 * block) / blocks) === quarter);
      expect(inQuarter.length).toBeGreaterThan(RANDOM_BLOCKS / 8);
    }
  });
  it.each([1, 2, 15, 16, 17, 500])("has each block of a disk of %i blocks", (blocks) => {
    expect(drawBlocks("seed", blocks)).toEqual(Array.from({ length: blocks }, (_, index) => index));
  });
  it("marks each block with other bytes, which nobody foresees without the seed", () => {
    const marks = [markerOf("seed", 1), markerOf("seed", 2), markerOf("other", 1)];
    expect(new Set(marks.map((mark) => mark.toString("hex"))).size).toBe(3);
    expect(marks.map((mark) => mark.length)).toEqual([BLOCK_BYTES, BLOCK_BYTES, BLOCK_BYTES]);
    expect(markerOf("seed", 1)).toEqual(marks[0]);
  });
  it("looks at each sector of a block", () => {
    const marker = markerOf("seed", 1);
    const zeros = Buffer.alloc(BLOCK_BYTES);
    const oneSector = Buffer.from(zeros);
    marker.copy(oneSector, 3 * 512, 3 * 512, 4 * 512);
    const changed = Buffer.from(zeros);
    changed[4_095] = 1;
    expect(
      [marker, zeros, Buffer.alloc(BLOCK_BYTES, 255), oneSector, changed, null].map((bytes) => lookAt(bytes, marker)),
    ).toEqual(["kept", 0, 255, "kept", "other", "unreadable"]);
  });
  it("is clean only if each block looks as the technique promises", () => {
    const LOOKS: BlockLook[] = [0, 255, "kept", "other", "unreadable"];
    for (const technique of TECHNIQUE_NAMES)
      for (const one of LOOKS)
        for (const other of LOOKS)
          for (const third of LOOKS) {
            const looks = [one, other, third];
            const isClean =
              TECHNIQUES[technique].expects === "uniform"
                ? typeof one === "number" && one === other && one === third
                : !looks.includes("kept") && !looks.includes("unreadable");
            expect([technique, looks, judgeSample(technique, looks).reason === null]).toEqual([
              technique,
              looks,
              isClean,
            ]);
          }
    expect(judgeSample("nvme_sanitize_crypto", [])).toMatchObject({ reason: "sample_unreadable" });
    expect(judgeSample("nvme_sanitize_block", [0, 0]).result).toBe("all 2 blocks read only the byte 0x00");
    expect(judgeSample("nvme_sanitize_block", [0, "kept"])).toEqual({
      reason: "sample_differs",
      result: "1 of 2 blocks still have what was written before",
    });
  });
});
