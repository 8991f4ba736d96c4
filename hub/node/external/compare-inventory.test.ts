import { expect, it } from "vitest";
import { EXTERNAL_FINDINGS } from "../../../shared/api/external-attempts.ts";
import { EXTERNAL_STATES } from "../../../shared/external-attempt.ts";
import { ONBOARDING_MODES } from "../../../shared/onboarding-mode.ts";
import { ABOUT_FINDING, compareHost, type Known, SAID } from "./compare-inventory.ts";

/** One row for each thing that the hub knows, one column for each thing that the external system says. */
const TABLE = `
              provisioning    provisioned        failed          absent
no_node       unknown_to_hub  unknown_to_hub     unknown_to_hub  agrees
other_mode    not_external    not_external       not_external    agrees
no_attempt    no_attempt_open no_attempt_open    agrees          agrees
begun         agrees          completion_unheard failure_unheard unknown_to_provisioner
in_progress   agrees          completion_unheard failure_unheard unknown_to_provisioner
verifying     no_attempt_open agrees             not_provisioned unknown_to_provisioner
completed     no_attempt_open agrees             not_provisioned unknown_to_provisioner
failed        no_attempt_open no_attempt_open    agrees          agrees
lost          agrees          completion_unheard failure_unheard unknown_to_provisioner
late          agrees          completion_unheard failure_unheard unknown_to_provisioner
unverified    no_attempt_open agrees             not_provisioned unknown_to_provisioner
abandoned     no_attempt_open no_attempt_open    agrees          agrees
`;
const [, ...rows] = TABLE.trim()
  .split("\n")
  .map((line) => line.trim().split(/\s+/));
const known: readonly [string, Known][] = [
  ["no_node", null],
  ["other_mode", { mode: "maas", attempt: null }],
  ["no_attempt", { mode: "external", attempt: null }],
  ...EXTERNAL_STATES.map((attempt): [string, Known] => [attempt, { mode: "external", attempt }]),
];

it("compares each state of a host with each thing that its external system says", () => {
  expect(known.map(([name, one]) => [name, ...SAID.map((said) => compareHost(said, one))])).toEqual([
    ["no_node", ...(rows[0] ?? []).slice(1)],
    ...rows.slice(1),
  ]);
});

it("looks at no attempt of a node that another system provisions", () => {
  for (const mode of ONBOARDING_MODES.filter((one) => one !== "external"))
    for (const said of SAID)
      expect(compareHost(said, { mode, attempt: "begun" })).toBe(said === "absent" ? "agrees" : "not_external");
});

it("says what to do about each difference", () => {
  for (const finding of EXTERNAL_FINDINGS) expect(ABOUT_FINDING[finding].next === null).toBe(finding === "agrees");
});
