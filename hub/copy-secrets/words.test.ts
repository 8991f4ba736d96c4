import { describe, expect, it } from "vitest";
import type { SecretsSettings } from "../secrets/open.ts";
import type { Outcome } from "./copy.ts";
import { adviceOn, type Counts, doneBy, lineOf, totalOf } from "./words.ts";

const OUTCOMES: readonly Outcome[] = ["copied", "there_already", "absent", "missing", "corrupt", "differs"];
const HINDERS: ReadonlySet<Outcome> = new Set(["missing", "corrupt", "differs"]);
const FILES: SecretsSettings = { kind: "sealed_file", directory: "/srv/muster/secrets" };
const VAULT: SecretsSettings = {
  kind: "vault",
  url: "https://vault.example:8200",
  namespace: "team",
  caFile: null,
  deadlineMs: 1000,
  mount: "muster-kv",
  credentials: { kind: "approle", mount: "approle", roleId: "the-role-id", secretIdFile: "/etc/secret-id" },
};
const WAYS = [
  [FILES, VAULT],
  [VAULT, FILES],
] as const;

const everyCounts: readonly Counts[] = Array.from(
  { length: 2 ** OUTCOMES.length },
  (_none, bits) => Object.fromEntries(OUTCOMES.map((outcome, n) => [outcome, (bits >> n) & 1])) as Counts,
);

describe("the texts about a copy", () => {
  it.each(WAYS)(
    "give advice exactly if something prevents the use of the new store, name both stores, and contain no login",
    (from, to) => {
      for (const counts of everyCounts) {
        const advice = adviceOn(counts, from, to);
        expect(advice.length > 0).toBe(OUTCOMES.some((outcome) => HINDERS.has(outcome) && counts[outcome] > 0));
        const told = [...advice, ...doneBy(from, to), totalOf(counts)].join(" ");
        expect(told).toMatch(/\/srv\/muster\/secrets/);
        expect(told).toMatch(/https:\/\/vault[.]example:8200, mount muster-kv, namespace team/);
        expect(told).not.toMatch(/the-role-id/);
      }
    },
  );

  it("have a line for each path except optional secrets that do not exist", () => {
    const lines = OUTCOMES.map((outcome) => lineOf({ path: "kv/a", outcome }));
    expect(lines).toEqual([
      "copied         kv/a",
      "there already  kv/a",
      null,
      "missing        kv/a",
      "unreadable     kv/a",
      "different      kv/a",
    ]);
  });
});
