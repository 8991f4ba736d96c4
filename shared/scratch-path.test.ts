import { describe, expect, it } from "vitest";
import { isScratchPath, SYSTEM_FOLDERS } from "./scratch-path.ts";

describe("a scratch path", () => {
  it.each(["/scratch", "/data/scratch", "/mnt/nvme0", "/srv/work", "/media/disk-1", "/local_scratch/a.b/c+d@e"])(
    "may be %s",
    (path) => {
      expect(isScratchPath(path)).toBe(true);
    },
  );

  it.each([
    "",
    "/",
    "//",
    "scratch",
    "/scratch/",
    "//scratch",
    "/scratch//a",
    "/scratch/../etc",
    "/scratch/.",
    "/..",
    "/...",
    "/scratch/a b",
    "/scratch/\n",
    "/scratch/\0",
    "/scratch/*",
    "/mnt",
    "/media",
    "/srv",
    `/${"a".repeat(65)}`,
    "/Scrätch",
  ])("is not %j", (path) => {
    expect(isScratchPath(path)).toBe(false);
  });

  it("is no folder of the system and nothing below one", () => {
    for (const folder of SYSTEM_FOLDERS)
      expect([folder, isScratchPath(`/${folder}`), isScratchPath(`/${folder}/x`)]).toEqual([folder, false, false]);
  });
});
