import { describe, expect, it } from "vitest";
import { FAILURES, failure, ruleOf } from "../../shared/failures.ts";
import { StatementError } from "../db/drizzle.ts";
import { CommitOutcomeUnknownError, DatabaseUnavailableError } from "../db/tx.ts";
import { MAAS_ERRORS, MaasError } from "../maas/port.ts";
import { SECRET_ERRORS, SecretError } from "../secrets/port.ts";
import { classifyError } from "./classify-error.ts";
import { StageFailure } from "./stage-failure.ts";

describe("classifyError", () => {
  it.each(MAAS_ERRORS)("gives MAAS's %s a class and a code of that class", (code) => {
    const met = classifyError(new MaasError({ code, operation: "GET machines/", message: "m", retryAfterSeconds: 7 }));
    expect(met?.retryAfterSeconds).toBe(7);
    const found = met?.failure;
    if (found === undefined) throw new Error("not classified");
    expect(FAILURES[found.class].codes).toContain(found.code);
    expect(found.evidence).toMatchObject({ maas_error: code, maas_operation: "GET machines/" });
  });

  it("gives a call without an answer time to take effect before the next run", () => {
    const lost = { operation: "POST", message: "m", outcomeUnknown: true } as const;
    expect(classifyError(new MaasError({ ...lost, code: "timeout" }))?.retryAfterSeconds).toBe(10);
    expect(classifyError(new MaasError({ ...lost, code: "power_failure" }))?.retryAfterSeconds).toBeNull();
    expect(
      classifyError(new MaasError({ ...lost, code: "unreachable", retryAfterSeconds: 30 }))?.retryAfterSeconds,
    ).toBe(30);
  });

  it("classifies a BMC that does not answer as a power failure", () => {
    const met = classifyError(new MaasError({ code: "no_rack", operation: "POST", message: "m" }));
    expect(met?.failure).toMatchObject({ class: "bmc_power_failure", code: "bmc_unreachable" });
  });

  it.each(SECRET_ERRORS)(
    "retries if the secret store is unavailable, and asks for a person if it refuses: %s",
    (code) => {
      const error = new SecretError(code, "kv/x", "detail");
      const failed = classifyError(error)?.failure;
      if (failed === undefined) throw new Error("not classified");
      const transient = error.isAway || code === "secret_conflict";
      expect(failed).toMatchObject({ class: transient ? "upstream_transient" : "site_capability_missing", code });
      expect(ruleOf(failed)).toMatchObject({
        retry: error.isAway ? "until_deadline" : transient ? "bounded" : "never",
        nextVerb: transient ? "retry" : "resume",
      });
      expect(failed.evidence).toEqual({ secret_path: "kv/x", secret_error: code });
    },
  );

  it("returns a stage's own failure unchanged", () => {
    const own = failure("hardware_mismatch", "boss_disk_missing", "no disk");
    expect(classifyError(new StageFailure(own))?.failure).toBe(own);
  });

  it("cuts the message of an unknown error", () => {
    const met = classifyError(new Error("x".repeat(5000)));
    expect(met?.failure).toMatchObject({ class: "upstream_transient", code: "hub_internal_error" });
    expect(met?.failure.message.length).toBeLessThan(700);
  });

  it("does not count a run during which the hub's own database was unavailable", () => {
    expect(classifyError(new CommitOutcomeUnknownError(new Error("cut")))).toBeNull();
    expect(classifyError(new DatabaseUnavailableError(new Error("connect ECONNREFUSED")))).toBeNull();
    expect(classifyError(new StatementError("select 1", new Error("socket closed")))).toBeNull();
    expect(classifyError(Object.assign(new Error("terminated"), { code: "57P01" }))).toBeNull();
  });
});
