import { expect, it } from "vitest";
import { toldBy } from "./drive.ts";

it("leaves a secret out of what a tool printed about a disk", () => {
  const end = { kind: "ended", exitCode: 1, stdout: "password=onelongsecret", stderr: "no disk" } as const;
  expect(toldBy(end)).toBe("no disk password=[redacted]");
});
