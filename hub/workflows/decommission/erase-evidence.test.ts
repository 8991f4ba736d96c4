import { describe, expect, it } from "vitest";
import { reportsErase } from "./erase-evidence.ts";

const events = (...types: string[]) => types.map((type) => ({ type }));

describe("the report of an erase in MAAS's events, newest first", () => {
  it.each([
    [["Released", "Releasing", "Disks erased", "Deployed"], true],
    [["Released", "Releasing", "Disks erased"], true],
    [["Released", "Releasing", "Deployed", "Disks erased"], false],
    [["Releasing", "Image Deployed", "Disks erased"], false],
    [["Released", "Releasing", "Aborted disk erasing", "Deployed"], false],
    [[], false],
  ])("%j: %s", (types, erased) => {
    expect(reportsErase(events(...types))).toBe(erased);
  });
});
