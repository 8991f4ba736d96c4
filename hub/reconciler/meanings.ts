import { type MaasStatus, MAAS_STATUS as S } from "../../shared/maas-status.ts";

/** The meanings that a MAAS status can have for a machine whose node is in service. */
type Meaning =
  | "deployed"
  | "released_outside"
  | "redeployed_outside"
  | "hardware_failure"
  | "recommissioned_outside"
  | "rescue_mode";

/** `MEANINGS` has a meaning for each of the 23 status codes of a MAAS machine (decision M2). */
export const MEANINGS = {
  [S.new]: "released_outside",
  [S.commissioning]: "recommissioned_outside",
  [S.failed_commissioning]: "hardware_failure",
  [S.missing]: "hardware_failure",
  [S.ready]: "released_outside",
  [S.reserved]: "released_outside",
  [S.deployed]: "deployed",
  [S.retired]: "released_outside",
  [S.broken]: "hardware_failure",
  [S.deploying]: "redeployed_outside",
  [S.allocated]: "released_outside",
  [S.failed_deployment]: "hardware_failure",
  [S.releasing]: "released_outside",
  [S.failed_releasing]: "released_outside",
  [S.disk_erasing]: "released_outside",
  [S.failed_disk_erasing]: "hardware_failure",
  [S.rescue_mode]: "rescue_mode",
  [S.entering_rescue_mode]: "rescue_mode",
  [S.failed_entering_rescue_mode]: "rescue_mode",
  [S.exiting_rescue_mode]: "rescue_mode",
  [S.failed_exiting_rescue_mode]: "rescue_mode",
  [S.testing]: "recommissioned_outside",
  [S.failed_testing]: "hardware_failure",
} as const satisfies Record<MaasStatus, Meaning>;
