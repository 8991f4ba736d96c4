import type { Step } from "./step.ts";
import { CONTROL_PLANE_STEPS } from "./steps/control-plane.ts";
import { FLEET_STEPS } from "./steps/fleet.ts";
import { launchInstance } from "./steps/launch.ts";
import { ABSENT_OF_INSTANCES, describe, listInstances, verifyImage, verifyTags } from "./steps/look.ts";
import { powerCycleInstance, rebootInstance, startInstance, stopInstance } from "./steps/power.ts";
import { reinstallInstance } from "./steps/reinstall.ts";
import { REPAIR_STEPS } from "./steps/repair.ts";
import { querySanitization } from "./steps/sanitization.ts";
import { teardown, verifyTeardown } from "./steps/teardown.ts";

/** The neutral suites of NVIDIA that this provider serves, each with its steps in the order in which they run. */
export const SUITES = {
  bare_metal: [
    launchInstance,
    listInstances,
    verifyTags,
    ...ABSENT_OF_INSTANCES,
    verifyImage,
    stopInstance,
    startInstance,
    rebootInstance,
    powerCycleInstance,
    reinstallInstance,
    describe,
    ...FLEET_STEPS,
    querySanitization,
    ...REPAIR_STEPS,
    teardown,
    verifyTeardown,
  ],
  "control-plane": CONTROL_PLANE_STEPS,
} as const satisfies Readonly<Record<string, readonly Step[]>>;
export type SuiteName = keyof typeof SUITES;

export const stepOf = (name: string): Step | undefined =>
  [...SUITES.bare_metal, ...SUITES["control-plane"]].find((step) => step.name === name);
