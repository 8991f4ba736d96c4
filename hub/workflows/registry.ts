import { decommissionWorkflows } from "./decommission/decommission.ts";
import type { Workflow } from "./engine/workflow.ts";
import { onboardWorkflow } from "./onboarding/onboard.ts";
import { reimageWorkflow } from "./reimage/reimage.ts";
import { reinstallWorkflow } from "./reimage/reinstall.ts";
import type { WorkflowServices } from "./services.ts";

export const workflowsOf = (services: WorkflowServices): readonly Workflow[] => [
  onboardWorkflow(services),
  ...decommissionWorkflows(services),
  reimageWorkflow(services),
  reinstallWorkflow(services),
];
