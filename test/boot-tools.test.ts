import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { requireTools, TOOLS } from "./boot/tools.ts";

const folder = mkdtempSync(join(tmpdir(), "muster-tools-"));
afterAll(() => rmSync(folder, { recursive: true }));
const read = (path: string) => readFileSync(new URL(`../${path}`, import.meta.url), "utf8");

/**
 * Only a boot on a new CI machine would show that the boot suite lacks a Debian package. `.ci/run` and the README of the boot suite must name the
 * Debian package of every program in `TOOLS`.
 */
it.each([
  [".ci/run", /^boot_packages\(\) \{\n.*echo (.*); fi$/m],
  ["test/boot/README.md", /`apt-get install -y --no-install-recommends (.*)`/],
])("%s installs every package whose tools a boot runs", (path, list) => {
  const packages = list.exec(read(path))?.[1]?.split(" ") ?? [];
  expect(packages).toEqual(expect.arrayContaining(Object.values(TOOLS)));
});

it("a boot without its tools fails and says what to install", () => {
  for (const tool of Object.keys(TOOLS).filter((one) => one !== "iptables")) writeFileSync(join(folder, tool), "");
  expect(() => requireTools(folder)).toThrow(/^A boot needs iptables, .*--no-install-recommends iptables$/);
  writeFileSync(join(folder, "iptables"), "");
  expect(() => requireTools(`/none:${folder}`)).not.toThrow();
});
