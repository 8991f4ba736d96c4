import { describe, expect, it } from "vitest";
import { failure } from "../../../shared/failures.ts";
import { SiteId } from "../../../shared/ids.ts";
import type { CredentialKind, CredentialRecord } from "../../db/queries/credential-uses.ts";
import { loginOutcome } from "./credential-outcome.ts";
import { warningOf } from "./credential-warnings.ts";

const NOW = new Date("2026-06-30T12:00:00Z");
const daysAgo = (days: number): Date => new Date(NOW.getTime() - days * 86_400_000);
const secret = (changes: Partial<CredentialRecord>): CredentialRecord => ({
  siteId: SiteId.parse("00000000-0000-4000-8000-000000000001"),
  kind: "power_override",
  path: "kv/x",
  overrideId: "o",
  selector: "hostname c07u31",
  usableSince: daysAgo(100),
  lastUsedAt: daysAgo(1),
  lastWorkedAt: null,
  lastFailedAt: null,
  lastFailureCode: null,
  lastFailureMessage: null,
  warnedOf: null,
  now: NOW,
  ...changes,
});

describe("the warning of a secret", () => {
  const ages = [null, 1, 29, 31, 60] as const;
  const day = (age: number | null): Date | null => (age === null ? null : daysAgo(age));
  const kinds: readonly CredentialKind[] = ["maas_token", "power", "power_override"];
  const cases = kinds.flatMap((kind) =>
    ages.flatMap((used) =>
      ages.flatMap((worked) => ages.flatMap((failed) => [1, 31].map((made) => ({ kind, used, worked, failed, made })))),
    ),
  );

  it("follows the newest recorded use, for all combinations of times", () => {
    for (const { kind, used, worked, failed, made } of cases) {
      const warning = warningOf(
        secret({
          kind,
          usableSince: daysAgo(made),
          lastUsedAt: day(used),
          lastWorkedAt: day(worked),
          lastFailedAt: day(failed),
        }),
      );
      const fails = failed !== null && (worked === null || failed < worked);
      const idle = kind === "power_override" && Math.min(used ?? made, made) >= 30;
      const expected = fails ? "failing" : idle ? "unused" : null;
      expect(warning?.reason ?? null, JSON.stringify({ kind, used, worked, failed, made })).toBe(expected);
    }
  });

  it("says what to do, and for which host", () => {
    expect(warningOf(secret({ lastUsedAt: null }))?.message).toMatch(
      /hostname c07u31 for 30 days\. Delete the override/,
    );
    const failing = { lastFailedAt: NOW, lastFailureMessage: "The BMC refused." };
    expect(warningOf(secret(failing))?.message).toMatch(/hostname c07u31 failed: The BMC refused\. Check the BMC/);
    expect(warningOf(secret({ ...failing, kind: "power", selector: null }))?.message).toMatch(/the site's BMC login/);
    const token = secret({ kind: "maas_token", lastFailedAt: NOW, lastFailureCode: "unauthorized" });
    expect(warningOf(token)?.message).toMatch(/\(unauthorized\).*write its credentials again/);
  });
});

describe("the outcome of an onboarding for its BMC login", () => {
  const state = { power_credentials_path: "kv/power" };
  it.each([
    ["a failed power action", state, failure("bmc_power_failure", "power_action_failed", "x"), "failed"],
    ["a refused BMC login", state, failure("bmc_power_failure", "bmc_login_refused", "x"), "failed"],
    ["no rack for the BMC", state, failure("bmc_power_failure", "bmc_unreachable", "x"), undefined],
    ["a lost secret", {}, failure("site_capability_missing", "secret_missing", "x", { secret_path: "kv/p" }), "failed"],
    ["a lost secret without its path", state, failure("site_capability_missing", "secret_missing", "x"), undefined],
    ["success", { ...state, deployed_at: NOW.toISOString() }, null, "worked"],
    [
      "a failure after the deploy",
      { ...state, deployed_at: NOW.toISOString() },
      failure("hardware_sync_failure", "sync_unhealthy", "x"),
      "worked",
    ],
    ["a cancel before the deploy", state, null, undefined],
    ["an end before a login was chosen", {}, null, undefined],
  ])("%s", (_, facts, end, kind) => expect(loginOutcome(facts, end)?.kind).toBe(kind));
});
