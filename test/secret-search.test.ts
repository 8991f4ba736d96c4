import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { SecretSearch } from "./support/secret-search.ts";

describe("the search for secrets", () => {
  const search = new SecretSearch();
  const secret = search.plant("a password", `"'\\ ü`);
  const wrapped = Buffer.from(`some words before ${secret} and after`).toString("base64").replace(/.{20}/g, "$&\n");

  it.each([
    ["in a text", `x${secret}x`],
    ["in JSON", JSON.stringify({ a: secret })],
    ["in JSON in JSON", JSON.stringify({ a: JSON.stringify({ b: secret }) })],
    ["in an address", `https://h.example/?p=${encodeURIComponent(secret)}`],
    ["in a form", new URLSearchParams({ p: secret }).toString()],
    ["in hex, as PostgreSQL shows bytes", `\\x${Buffer.from(secret).toString("hex")}`],
    ["cut in half", secret.slice(0, Math.ceil(secret.length / 2))],
    ["cut in the other half", secret.slice(Math.ceil(secret.length / 2))],
    ["turned round", [...secret].reverse().join("")],
    ["wrapped", `${secret.slice(0, 9)}\n  ${secret.slice(9)}`],
    ["in wrapped base64", wrapped],
    ["in wrapped base64 in JSON", JSON.stringify(wrapped)],
    ...[0, 1, 2].map((n) => [
      `in base64url after ${n}`,
      Buffer.from(`${"x".repeat(n)}${secret}`).toString("base64url"),
    ]),
  ])("finds a secret %s", (_how, text) => {
    expect(search.leaksIn("here", text)).toMatchObject([{ secret: "a password", place: "here" }]);
  });

  it("finds nothing elsewhere, and misses a compressed secret", () => {
    const other = new SecretSearch().plant("another");
    expect(search.leaksIn("here", `${other} ${"Cnry password ".repeat(99)}`)).toEqual([]);
    expect(search.leaksIn("here", gzipSync(secret).toString("latin1"))).toEqual([]);
    expect(() => search.add("a pin", "1234")).toThrow("too short");
  });

  it("never repeats the secret itself", () => {
    expect(JSON.stringify(search.leaksIn("here", secret))).not.toContain(secret);
  });
});
