import type { OnboardServices } from "./context.ts";
import { decommissionWorkflows } from "./decommission.ts";
import type { Workflow } from "./engine/workflow.ts";
import { onboardWorkflow } from "./onboard.ts";

/** Every workflow kind that this hub runs. */
export const workflowsOf = (services: OnboardServices): readonly Workflow[] => [
  onboardWorkflow(services),
  ...decommissionWorkflows(services),
];
