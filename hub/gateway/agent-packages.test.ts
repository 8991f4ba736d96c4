import { expect, it } from "vitest";
import { compareVersions } from "./agent-packages.ts";

it("orders versions as Debian does", () => {
  const ordered = ["0.9.9", "0.10.0~rc1", "0.10.0", "0.10.0+1", "0.10.1", "1.0", "1.0.1", "10.0"];
  for (const [at, a] of ordered.entries()) {
    for (const [other, b] of ordered.entries()) expect(Math.sign(compareVersions(a, b))).toBe(Math.sign(at - other));
  }
});
