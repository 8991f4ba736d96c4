import type { HubApi } from "../../support/hub-api.ts";

/** What a step prints. The suite's checks read the fields by name; `skipped` has the suite skip them, with `skip_reason`. */
export type StepResult = Readonly<Record<string, unknown>> & { readonly success: boolean };

/** One step of NVIDIA's neutral suites, done on Muster's own API. */
export interface Step {
  /** The name in the suite, by which its checks find the step's result. */
  readonly name: string;
  readonly phase: "setup" | "test" | "teardown";
  /** How long the suite lets the step run, in seconds. */
  readonly seconds: number;
  /** The arguments of the step, each with the suite's template of its value. */
  readonly args: Readonly<Record<string, string>>;
  /** Arguments that the suite keeps out of its log. */
  readonly secret?: readonly string[];
  readonly run: (hub: HubApi, args: Readonly<Record<string, string>>) => Promise<StepResult>;
}

export const ADMIN = "/api/v1/admin";

/** The argument that names the instance of the run. */
export const INSTANCE = { "instance-id": "{{steps.launch_instance.instance_id}}" };

/** A step that only reads. */
export const readStep = (name: string, run: (hub: HubApi) => Promise<object>): Step => ({
  name,
  phase: "test",
  seconds: 120,
  args: {},
  run: async (hub) => ({ success: true, ...(await run(hub)) }),
});

/** What Muster does not have. The suite skips the checks of the step, and prints the reason. */
export const absent = (name: string, phase: Step["phase"], reason: string): Step => ({
  name,
  phase,
  seconds: 60,
  args: {},
  run: () => Promise.resolve({ success: true, skipped: true, skip_reason: reason }),
});

export function argument(args: Readonly<Record<string, string>>, name: string): string {
  const value = args[name];
  if (value === undefined || value === "") throw new Error(`The argument --${name} is missing.`);
  return value;
}
