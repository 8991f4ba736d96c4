import { type Failure, failure } from "../../../shared/failures.ts";
import { type MaasStatus, MAAS_STATUS as S } from "../../../shared/maas-status.ts";
import type { OnboardingStage } from "../../../shared/workflow-status.ts";
import type { MaasMachine } from "../../maas/port.ts";

/**
 * In the table of verdicts, `configure` stands for the stages that change the machine's storage, or the connections of the machine's interfaces to
 * subnets. In the table `VERDICTS`, `recover` stands for a recovery or a compensation that releases the machine back to Ready. `seeding` stands for
 * the stage in which the hub asks MAAS for the deployed machine's token, so that its verdict on a locked machine is a failure. In the table of
 * verdicts, `serving` stands for the stages that wait for the deployed host's hardware sync, agent or report of its hardware.
 */
export const JUDGED_AT = [
  "commission",
  "ready",
  "configure",
  "deploy",
  "deployed",
  "recover",
  "seeding",
  "serving",
] as const;
export type JudgedAt = (typeof JUDGED_AT)[number];

/**
 * Maps each stage to the column of the table `VERDICTS` by which the stage judges its machine. `untouched` stands for a stage that changes no
 * machine, so that no status of a machine stops the stage.
 */
export const PLACE_OF = {
  load_site_config: "untouched",
  resolve_power_credentials: "untouched",
  // The stage `commission_node` judges the machine that `create_or_find_in_maas` found. The stage `create_or_find_in_maas` itself only refuses a
  // machine that a removed node left deployed.
  create_or_find_in_maas: "untouched",
  commission_node: "commission",
  wait_for_ready: "ready",
  configure_storage: "configure",
  apply_roce_phase2: "configure",
  ensure_pxe_interface_auto: "configure",
  render_cloud_init: "deploy",
  deploy_via_maas: "deploy",
  wait_for_deployed: "deployed",
  // The stage `classify_deploy_failure` reads only MAAS's events, and a later stage judges the machine.
  classify_deploy_failure: "untouched",
  recover_for_datasource_retry: "recover",
  ensure_hardware_sync_configured: "seeding",
  wait_for_hardware_sync_healthy: "serving",
  wait_for_agent_enrollment: "serving",
  check_hardware: "serving",
} as const satisfies Record<OnboardingStage, JudgedAt | "untouched">;

/** A stage that judges a machine's status, or the compensation of a deploy, which also judges the status. */
export type Judging =
  | { [S in OnboardingStage]: (typeof PLACE_OF)[S] extends "untouched" ? never : S }[OnboardingStage]
  | "compensation";

/**
 * A verdict that ends in `_if_ours` holds only if the workflow requested the deploy and Muster's MAAS user owns the machine. If the condition of a
 * verdict that ends in `_if_ours` is not met, the failure is `state_ambiguity` (decision M2).
 */
export type TableVerdict =
  | "go_on"
  | "go_on_if_ours"
  | "act"
  | "act_if_ours"
  | "adopt_if_ours"
  | "wait"
  | "wait_if_ours"
  | "abort_if_ours"
  | "release_if_ours"
  | "deploy_failed_if_ours"
  | "commissioning_failed"
  | "testing_failed"
  | "power_failed"
  | "ambiguous";

type Row = Readonly<Record<JudgedAt, TableVerdict>>;
const row = (
  commission: TableVerdict,
  ready: TableVerdict,
  configure: TableVerdict,
  deploy: TableVerdict,
  deployed: TableVerdict,
  recover: TableVerdict,
  seeding: TableVerdict,
  serving: TableVerdict,
): Row => ({ commission, ready, configure, deploy, deployed, recover, seeding, serving });
const A = "ambiguous";
const W = "wait";
const ADOPT = "adopt_if_ours";
const OURS = "go_on_if_ours";
const FAILED = "deploy_failed_if_ours";
const POWER = "power_failed";
const BACK = "release_if_ours";

/** The verdict of each kind of stage on a machine, for each of MAAS's 23 status codes (maas 3). */
export const VERDICTS = {
  // Each row of `VERDICTS` has a verdict for `commission`, `ready`, `configure`, `deploy`, `deployed`, `recover`, `seeding` and `serving`.
  [S.new]: row("act", A, A, A, A, A, A, A),
  [S.commissioning]: row("go_on", W, W, A, A, A, A, A),
  [S.failed_commissioning]: row("act", "commissioning_failed", A, A, A, A, A, A),
  [S.missing]: row(A, A, A, A, A, A, A, A),
  [S.ready]: row("go_on", "go_on", "act", "act", A, "go_on", A, A),
  [S.reserved]: row(A, A, A, A, A, A, A, A),
  [S.deployed]: row(ADOPT, ADOPT, ADOPT, ADOPT, OURS, BACK, "act_if_ours", OURS),
  [S.retired]: row(A, A, A, A, A, A, A, A),
  [S.broken]: row(A, A, A, A, A, A, A, A),
  [S.deploying]: row(ADOPT, ADOPT, ADOPT, ADOPT, "wait_if_ours", "abort_if_ours", A, A),
  [S.allocated]: row(ADOPT, ADOPT, ADOPT, "act_if_ours", FAILED, BACK, A, A),
  [S.failed_deployment]: row(A, A, A, FAILED, FAILED, BACK, A, A),
  [S.releasing]: row(W, W, W, W, A, W, A, A),
  [S.failed_releasing]: row(POWER, POWER, POWER, POWER, A, POWER, A, A),
  [S.disk_erasing]: row(W, W, W, W, A, W, A, A),
  [S.failed_disk_erasing]: row(A, A, A, A, A, A, A, A),
  [S.rescue_mode]: row(A, A, A, A, A, A, A, A),
  [S.entering_rescue_mode]: row(A, A, A, A, A, A, A, A),
  [S.failed_entering_rescue_mode]: row(A, A, A, A, A, A, A, A),
  [S.exiting_rescue_mode]: row(A, A, A, A, A, A, A, A),
  [S.failed_exiting_rescue_mode]: row(A, A, A, A, A, A, A, A),
  [S.testing]: row("go_on", W, W, W, A, A, A, A),
  [S.failed_testing]: row("act", "testing_failed", A, A, A, A, A, A),
} as const satisfies Record<MaasStatus, Row>;

const TABLE: Readonly<Record<number, Row>> = VERDICTS;

/** The judgement `adopt` means that the workflow has already requested the machine's deploy, so the stage has nothing left to do. */
export type Judgement =
  | { readonly kind: "go_on" | "act" | "adopt" | "wait" | "abort" | "release" | "deploy_failed" }
  | { readonly kind: "failed"; readonly failure: Failure };

/** The state of a machine from a direct read of MAAS or from the hub's last stored observation of the machine. */
export type JudgedMachine = Seen & Pick<MaasMachine, "hostname">;

/** The argument `ours` is true if the workflow requested the machine's deploy and Muster's MAAS user owns the machine. */
export function judge(stage: Judging, machine: JudgedMachine, ours: boolean): Judgement {
  const known = TABLE[machine.status];
  if (known === undefined) return ambiguous(stage, machine, "unknown_maas_status");
  const verdict = known[stage === "compensation" ? "recover" : PLACE_OF[stage]];
  switch (verdict) {
    case "go_on":
    case "wait":
      return { kind: verdict };
    case "act":
      return machine.locked ? ambiguous(stage, machine, "machine_locked") : { kind: "act" };
    case "abort_if_ours":
    case "release_if_ours":
      if (!ours) return ambiguous(stage, machine, "machine_owned_by_other");
      if (machine.locked) return ambiguous(stage, machine, "machine_locked");
      return { kind: verdict === "abort_if_ours" ? "abort" : "release" };
    case "go_on_if_ours":
      return ours ? { kind: "go_on" } : ambiguous(stage, machine, "machine_owned_by_other");
    case "wait_if_ours":
      return ours ? { kind: "wait" } : ambiguous(stage, machine, "machine_owned_by_other");
    case "act_if_ours":
      if (!ours) return ambiguous(stage, machine, "machine_owned_by_other");
      return machine.locked ? ambiguous(stage, machine, "machine_locked") : { kind: "act" };
    case "adopt_if_ours":
      return ours ? { kind: "adopt" } : ambiguous(stage, machine, "unexpected_maas_status");
    case "deploy_failed_if_ours":
      return ours ? { kind: "deploy_failed" } : ambiguous(stage, machine, "unexpected_maas_status");
    case "commissioning_failed":
      return commissioningFailed(machine);
    case "testing_failed":
      return testingFailed(machine);
    case "power_failed": {
      const message = `MAAS could not power off ${nameOf(machine)} to release it: ${whyOf(machine)}. Check the BMC, then resume.`;
      return {
        kind: "failed",
        failure: failure("bmc_power_failure", "power_action_failed", message, machineEvidence(machine)),
      };
    }
    case "ambiguous":
      return ambiguous(stage, machine, "unexpected_maas_status");
  }
}

function commissioningFailed(machine: JudgedMachine): Judgement {
  const message = `${nameOf(machine)} failed commissioning in MAAS: ${whyOf(machine)}. Read the script results in MAAS, then resume.`;
  const evidence = machineEvidence(machine);
  return { kind: "failed", failure: failure("pxe_discovery_failure", "commissioning_failed", message, evidence) };
}

/** At the status Failed testing, MAAS has booted and tested the host, so the fault is in the hardware and not in PXE or DHCP. */
function testingFailed(machine: JudgedMachine): Judgement {
  const message = `${nameOf(machine)} failed its hardware tests in MAAS: ${whyOf(machine)}. Override the failed testing in MAAS or repair the hardware, then resume.`;
  const evidence = machineEvidence(machine);
  return { kind: "failed", failure: failure("hardware_mismatch", "testing_failed", message, evidence) };
}

const TODO = {
  unknown_maas_status:
    "This version of Muster does not know that status. Bring the machine to another status in MAAS, then rerun.",
  unexpected_maas_status:
    "This workflow did not cause that status. Bring the machine back to its status before, or to New or Ready if nobody uses it, then rerun.",
  machine_locked: "Unlock the machine in MAAS, then resume.",
  machine_owned_by_other: "It does not run a deploy of this workflow. Have its owner release it in MAAS, then rerun.",
} as const satisfies Record<AmbiguityCode, string>;

type AmbiguityCode = "unknown_maas_status" | "unexpected_maas_status" | "machine_locked" | "machine_owned_by_other";

function ambiguous(at: Judging, machine: JudgedMachine, code: AmbiguityCode): Judgement {
  const besides = code === "machine_locked" ? ", and it is locked" : ownerOf(machine, code);
  const message = `${nameOf(machine)} is '${machine.statusName}' (${machine.status}) in MAAS${besides}, so nothing is done to it at "${at}". ${TODO[code]}`;
  return { kind: "failed", failure: failure("state_ambiguity", code, message, machineEvidence(machine)) };
}

function ownerOf({ owner }: JudgedMachine, code: AmbiguityCode): string {
  if (owner !== null) return `, and ${owner.slice(0, 64)} owns it`;
  return code === "machine_owned_by_other" ? ", and nobody owns it" : "";
}

const nameOf = (machine: JudgedMachine): string => `Machine ${machine.hostname} (${machine.systemId})`;
const whyOf = (machine: JudgedMachine): string =>
  machine.errorDescription || machine.statusMessage || "MAAS gave no reason";

type Seen = Pick<
  MaasMachine,
  | "systemId"
  | "status"
  | "statusName"
  | "statusMessage"
  | "errorDescription"
  | "powerState"
  | "ipAddresses"
  | "owner"
  | "locked"
>;

export function machineEvidence(machine: Seen): Record<string, string | number | boolean | null | string[]> {
  return {
    maas_system_id: machine.systemId,
    last_maas_status: machine.statusName.slice(0, 64),
    last_maas_status_code: machine.status,
    last_maas_power_state: machine.powerState.slice(0, 32),
    last_maas_ips: machine.ipAddresses.slice(0, 16),
    maas_owner: machine.owner,
    maas_locked: machine.locked,
    maas_message: (machine.errorDescription || machine.statusMessage).slice(0, 500),
  };
}
