import { randomUUID } from "node:crypto";
import { periodically } from "../../hub/timing/periodically.ts";
import { startWatcher, type Watcher, type WatcherOptions } from "../../hub/watcher/watcher.ts";
import { classifyError } from "../../hub/workflows/classify-error.ts";
import { startWorkflowRunner, type WorkflowRunner } from "../../hub/workflows/engine/runner.ts";
import { workflowsOf } from "../../hub/workflows/registry.ts";
import type { WorkflowId } from "../../shared/ids.ts";
import { quietLog } from "./log.ts";
import type { OnboardingRig } from "./onboarding-rig.ts";

/** Starts a hub's workflow runner, which the test must close before it closes the `OnboardingRig`. */
export const startRunner = (rig: OnboardingRig, workflows = workflowsOf(rig.services)): WorkflowRunner =>
  startWorkflowRunner({
    ...rig.test.database,
    hubId: randomUUID(),
    workflows,
    classifyError,
    log: quietLog,
    databaseUrl: rig.test.url,
    pollMs: 50,
  });

/**
 * Simulates the agents of the given onboardings periodically, one agent after the other. On a slow computer, many simulated agents at once could use
 * all database connections.
 */
export const startAgents = (rig: OnboardingRig, of: ReadonlySet<WorkflowId>): { close(): Promise<void> } =>
  periodically({
    everyMs: 100,
    turn: async () => {
      for (const id of of) await rig.playAgent(id);
    },
    log: quietLog,
    failed: "the simulated agents could not act",
  });

export const startRigWatcher = (
  rig: OnboardingRig,
  {
    clientFor = rig.services.maas,
    pollIntervalMs = 50,
  }: Partial<Pick<WatcherOptions, "clientFor" | "pollIntervalMs">> = {},
): Watcher =>
  startWatcher({
    ...rig.test.database,
    hubId: randomUUID(),
    clientFor,
    log: quietLog,
    pollIntervalMs,
    sweepIntervalMs: 5_000,
  });
