import { expect, it } from "vitest";
import { toldBy } from "./drive.ts";

it.each([
  ["no disk", "password=onelongsecret", "no disk password=[redacted]"],
  ["nvme: VENDOR_API_KEY=onelongsecret refused", "no disk", "nvme: VENDOR_API_KEY=[redacted] refused no disk"],
])("leaves a secret out of what a tool printed about a disk: %s, %s", (stderr, stdout, told) =>
  expect(toldBy({ kind: "ended", exitCode: 1, stdout, stderr })).toBe(told),
);

it("leaves out a secret that the cut would shorten until no rule finds it", () => {
  const key = "mN3kQ7_x-Zt0aB4cD5eF6gH7iJ8kL9mN0oP1qR2sT3u";
  expect(toldBy({ kind: "ended", exitCode: 1, stdout: `${".".repeat(179)}${" "}${key}`, stderr: "" })).toBe(
    `${".".repeat(179)} [redacted]`,
  );
});
