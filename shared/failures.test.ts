import { describe, expect, it } from "vitest";
import { FAILURE_CLASSES, FAILURES, type Failure, failure, ruleOf } from "./failures.ts";

/** The table of lifecycle 4.7: for each failure class, its automatic retry and the workflow's final status. */
const LIFECYCLE_4_7 = {
  input_config_error: ["never", "failed_manual_intervention"],
  site_capability_missing: ["never", "failed_manual_intervention"],
  upstream_transient: ["bounded", "failed_retryable"],
  bmc_power_failure: ["bounded", "failed_manual_intervention"],
  pxe_discovery_failure: ["bounded", "failed_manual_intervention"],
  hardware_mismatch: ["never", "failed_manual_intervention"],
  deploy_cloud_init_failure: ["bounded", "failed_retryable"],
  post_deploy_connectivity_failure: ["bounded", "failed_manual_intervention"],
  hardware_sync_failure: ["bounded", "failed_manual_intervention"],
  agent_enrollment_failure: ["bounded", "failed_manual_intervention"],
  state_ambiguity: ["never", "failed_manual_intervention"],
} as const;

const every = FAILURE_CLASSES.flatMap((cls) => FAILURES[cls].codes.map((code) => ({ class: cls, code }) as Failure));

describe("the taxonomy", () => {
  it("has the eleven classes of lifecycle 4.7, each with its rule", () => {
    const rules = FAILURE_CLASSES.map((cls) => [cls, [FAILURES[cls].retry, FAILURES[cls].endsAs]]);
    expect(Object.fromEntries(rules)).toEqual(LIFECYCLE_4_7);
  });

  it("compensates only a failed deploy (decision W2)", () => {
    expect(FAILURE_CLASSES.filter((cls) => FAILURES[cls].compensate)).toEqual(["deploy_cloud_init_failure"]);
  });

  it("has each code in one class only", () => {
    const codes = every.map(({ code }) => code);
    expect(new Set(codes).size).toBe(codes.length);
  });

  it("has exceptions only for codes of the class", () => {
    for (const cls of FAILURE_CLASSES) {
      const rule: { codes: readonly string[]; exceptions?: object } = FAILURES[cls];
      for (const code of Object.keys(rule.exceptions ?? {})) expect(rule.codes, cls).toContain(code);
    }
  });

  it.each(every)("names the verb of $class/$code in the operator's next action", (failed) => {
    const { nextAction, nextVerb } = ruleOf(failed);
    expect(nextAction.toLowerCase()).toContain(nextVerb.replace("_", " "));
  });

  it("stops for a person after the bounded recovery has been tried (lifecycle 4.11)", () => {
    const failed = failure("deploy_cloud_init_failure", "datasource_retry_exhausted", "m");
    expect(ruleOf(failed)).toMatchObject({ endsAs: "failed_manual_intervention", compensate: true });
  });
});
