import { spawnSync } from "node:child_process";
import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import type { UserDataInput } from "../input.ts";
import { HostFolder, renderPart, sampleInput, skipWithout } from "../part.fixture.ts";
import { PARTS } from "./index.ts";
import { partFile } from "./part.ts";

// Each test starts real shells, which take long on a busy machine.
vi.setConfig({ testTimeout: 60_000 });

const shellParts = PARTS.filter((part) => part.contentType === "text/x-shellscript").map((part) => part.name);
const check = (command: string, args: string[], text: string) => {
  const result = spawnSync(command, args, { input: text, encoding: "utf8" });
  return { status: result.status, output: result.stdout + result.stderr };
};
const CLEAN = { status: 0, output: "" };

/**
 * Replaces every text of the input by a hostile text. The test skips the input's schema, so that only the quoting protects the shell script from
 * hostile texts.
 */
const poison = (value: unknown, text: string): unknown => {
  if (typeof value === "string") return value.startsWith("https://") ? `https://hub.test/${text}` : text;
  if (Array.isArray(value)) return value.map((item) => poison(item, text));
  if (typeof value === "object" && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, poison(item, text)]));
  }
  return value;
};
const poisoned = (text: string): UserDataInput => poison(sampleInput(), text) as UserDataInput;

describe.each(shellParts)("%s", (name) => {
  it("has a syntax that bash accepts", () => {
    expect(check("bash", ["-n"], renderPart(name, sampleInput()))).toEqual(CLEAN);
  });

  // Rule SC2016 of shellcheck warns of `$` in single quotes. The first lines of a bootstrap part put each value in single quotes on purpose.
  it.skipIf(skipWithout("shellcheck", "shellcheck"))("passes shellcheck", () => {
    expect(check("shellcheck", ["--exclude=SC2016", "-"], renderPart(name, sampleInput()))).toEqual(CLEAN);
  });

  it("treats hostile values as text: they run nothing and arrive unchanged", () => {
    const folder = new HostFolder();
    try {
      const marker = folder.path("executed");
      const runs = [
        `$(touch ${marker})`,
        `\`touch ${marker}\``,
        `';touch ${marker};'`,
        `";touch ${marker};"`,
        `\ntouch ${marker}\n`,
      ];
      for (const text of [...runs, `\\'$(touch ${marker})`, `!!;\${IFS}touch ${marker}`]) {
        // The test runs only the first lines of a part, which set the part's values and end where the shared library begins.
        const script = renderPart(name, poisoned(text));
        const header = script.slice(0, script.indexOf("# Shared by every part"));
        expect(header).not.toBe("");
        expect(check("bash", ["-eu"], header)).toEqual(CLEAN);
        expect(check("bash", ["-n"], script)).toEqual(CLEAN);
      }
      expect(() => folder.read("executed")).toThrow();
    } finally {
      folder.remove();
    }
  });

  it("differs only in its header for different values", () => {
    const bodyOf = (script: string) => script.slice(script.indexOf("# Shared by every part: where"));
    const body = bodyOf(renderPart(name, sampleInput()));
    fc.assert(
      fc.property(
        fc.string({ unit: "binary" }).filter((text) => !text.includes("\0") && text.isWellFormed()),
        (text) => {
          expect(renderPart(name, poisoned(encodeURI(text))).endsWith(body)).toBe(true);
        },
      ),
      { numRuns: 30 },
    );
  });
});

describe("01-bootstrap-unit.sh", () => {
  const hook = partFile("bootstrap-unit.sh");
  const installed = hook.slice(hook.indexOf("#!/bin/bash"), hook.indexOf("\nSCRIPT\n"));

  it.skipIf(skipWithout("shellcheck", "shellcheck"))("and its installed script pass shellcheck", () => {
    expect(check("shellcheck", ["-"], hook)).toEqual(CLEAN);
    expect(check("shellcheck", ["-"], installed)).toEqual(CLEAN);
  });
});

it.skipIf(skipWithout("shellcheck", "shellcheck"))("the installed routing script passes shellcheck", () => {
  expect(check("shellcheck", ["-"], partFile("roce-routing-apply.sh"))).toEqual(CLEAN);
});
