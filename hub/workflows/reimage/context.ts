import { failure } from "../../../shared/failures.ts";
import type { STAGES_OF_MODE } from "../../../shared/workflow-status.ts";
import { readReimagedHost } from "../../db/queries/reimages.ts";
import type { DecommissionInput } from "../decommission/decommission-context.ts";
import {
  buildDecommissionContext,
  type DecommissionContext,
  DecommissionState,
} from "../decommission/decommission-context.ts";
import type { Stage, StageRun, StagesOf } from "../engine/stage.ts";
import type { ProvisionContext } from "../provisioning/context.ts";
import { ProvisionState } from "../provisioning/provision-state.ts";
import type { WorkflowServices } from "../services.ts";
import { StageFailure } from "../stage-failure.ts";

export const ReimageState = DecommissionState.extend(ProvisionState.shape);
export type ReimageState = DecommissionState & ProvisionState;

export interface ReimageContext
  extends Omit<DecommissionContext, "state" | "profile" | "services">,
    ProvisionContext<DecommissionInput, ReimageState> {}

/** The stages of the modes that give a host a new system. */
type StageName = (typeof STAGES_OF_MODE)["reimage" | "reinstall"][number];
export type ReimageStage<Name extends StageName = StageName> = Stage<ReimageContext, ReimageState, Name>;
export type ReimageStages<Names extends readonly StageName[]> = StagesOf<Names, ReimageContext, ReimageState>;

export async function buildReimageContext(
  services: WorkflowServices,
  run: StageRun<DecommissionInput, ReimageState>,
  operation: "reimage" | "reinstall",
): Promise<ReimageContext> {
  const { node, decommission, boundSystemId, session, tenancy, gpuVendor } = await buildDecommissionContext(
    services,
    run,
  );
  const rows = await readReimagedHost(services.db, node.id);
  if (rows === null) {
    const message = `The site, profile or SKU of node ${node.hostname} does not exist any more, so no system can be deployed. Cancel the ${operation}.`;
    throw new StageFailure(failure("input_config_error", "profile_unknown", message));
  }
  const { ipmiIp, ...settings } = rows;
  const host = { nodeId: node.id, hostname: node.hostname, ipmiIp };
  return {
    ...run,
    ...settings,
    services,
    operation,
    host,
    node,
    decommission,
    boundSystemId,
    session,
    tenancy,
    gpuVendor,
  };
}
