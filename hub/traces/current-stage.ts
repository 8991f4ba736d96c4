import { AsyncLocalStorage } from "node:async_hooks";

/** One visit of a workflow to a stage, from its entry to its end, with all runs and attempts of the stage in between. */
export interface StageVisit {
  readonly workflowId: string;
  readonly stage: string;
  readonly enteredAt: Date;
}

const current = new AsyncLocalStorage<StageVisit>();

/** Runs `run` as a part of a stage, so that the calls that `run` makes to other systems are known as calls of the stage. */
export const inStage = <T>(visit: StageVisit, run: () => Promise<T>): Promise<T> => current.run(visit, run);

/** Returns the stage of which the running code is a part, or null outside of a stage. */
export const currentStage = (): StageVisit | null => current.getStore() ?? null;
