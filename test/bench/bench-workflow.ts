import { z } from "zod";
import type { Stage, StageRun } from "../../hub/workflows/engine/stage.ts";
import { defineWorkflow, type Workflow } from "../../hub/workflows/engine/workflow.ts";
import { failure } from "../../shared/failures.ts";

/** The number of stages that a workflow of the benchmark runs after the stage `HOLD`, including the stage `TIMED`. */
export const STAGES = 16;
/** A stage that never ends, for benchmark workflows whose leases a hub only has to renew. */
export const HOLD = "hold";
/**
 * The stage that measures how late the hub runs a workflow. `input.due` is the workflow's due time in milliseconds since 1970, by the database's
 * clock.
 */
export const TIMED = "timed";

const Input = z.object({ due: z.number().optional() });
type State = { late_ms?: number };
type Run = StageRun<z.output<typeof Input>, State>;

const stage = (name: string, run: Stage<Run, State>["run"]): Stage<Run, State> => ({
  name,
  title: name,
  reentry: { rule: "from_top" },
  timeout: {
    seconds: () => 3600,
    failure: () => failure("upstream_transient", "hub_internal_error", "The bench's stage ran out of time."),
  },
  retry: { maxAttempts: 1, baseSeconds: 1, maxSeconds: 1 },
  run,
});

/** A workflow whose stages call no other system, so that the benchmark measures only the workflow engine's own cost. */
export function benchWorkflow(on: { ran(): void; hold(signal: AbortSignal): Promise<unknown> }): Workflow {
  return defineWorkflow<Run, z.output<typeof Input>, State>({
    kind: "bench",
    stages: [
      stage(HOLD, async ({ signal }) => {
        await on.hold(signal);
        return { kind: "done", message: "Held" };
      }),
      ...Array.from({ length: STAGES - 1 }, (_, index) =>
        stage(`stage_${index + 1}`, async () => {
          on.ran();
          return { kind: "done", message: "Nothing to do" };
        }),
      ),
      stage(TIMED, async ({ now, input }) => {
        if (input.due === undefined) on.ran();
        return {
          kind: "done",
          message: "Started",
          patch: input.due === undefined ? {} : { late_ms: now.getTime() - input.due },
        };
      }),
    ],
    input: Input,
    state: z.object({ late_ms: z.number() }).partial() as z.ZodType<Partial<State>>,
    renamed: {},
    buildContext: async (run) => run,
    hooks: {},
  });
}
