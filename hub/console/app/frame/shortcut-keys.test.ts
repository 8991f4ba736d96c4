import { describe, expect, it } from "vitest";
import { meaningOf } from "./shortcut-keys.ts";

const key = (name: string, more: object = {}) => ({
  key: name,
  ctrl: false,
  alt: false,
  meta: false,
  typing: false,
  ...more,
});
const ON = { afterG: false, single: true };

describe("a pressed key", () => {
  it.each([
    [key("g"), ON, { kind: "wait" }],
    [key("/"), ON, { kind: "find" }],
    [key("?"), ON, { kind: "list" }],
    [key("n"), ON, { kind: "none" }],
    [key("n"), { ...ON, afterG: true }, { kind: "go", key: "n" }],
    [key("N"), { ...ON, afterG: true }, { kind: "none" }],
    [key("n", { typing: true }), { ...ON, afterG: true }, { kind: "none" }],
    [key("/", { typing: true }), ON, { kind: "none" }],
    [key("g", { ctrl: true }), ON, { kind: "none" }],
    [key("g"), { ...ON, single: false }, { kind: "none" }],
    [key("k", { ctrl: true }), { ...ON, single: false }, { kind: "palette" }],
    [key("K", { meta: true, typing: true }), ON, { kind: "palette" }],
    [key("k", { ctrl: true, alt: true }), ON, { kind: "none" }],
  ] as const)("%j with %j means %j", (pressed, state, meaning) => {
    expect(meaningOf(pressed, state)).toEqual(meaning);
  });
});
