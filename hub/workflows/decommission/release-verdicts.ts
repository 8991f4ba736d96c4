import { type Failure, failure } from "../../../shared/failures.ts";
import { type MaasStatus, MAAS_STATUS as S } from "../../../shared/maas-status.ts";
import { type JudgedMachine, machineEvidence } from "../machine/verdict-table.ts";

export const RELEASE_STAGES = ["release_maas_node", "power_off_maas_node"] as const;
export type ReleaseStage = (typeof RELEASE_STAGES)[number];

/**
 * By the verdict `release`, a stage asks MAAS to release the machine. By the verdicts `release_failed` and `erase_failed`, a stage reports a failure,
 * and asks MAAS for another release at its next attempt. A stage asks for a release only if Muster's MAAS user owns the machine and nobody has locked
 * the machine. The verdict `ambiguous` means that nothing that Muster does explains the machine's status (decision M2).
 */
export type ReleaseVerdict = "released" | "wait" | "release" | "release_failed" | "erase_failed" | "ambiguous";

type Row = Readonly<Record<ReleaseStage, ReleaseVerdict>>;
const row = (release_maas_node: ReleaseVerdict, power_off_maas_node: ReleaseVerdict): Row => ({
  release_maas_node,
  power_off_maas_node,
});
const A = "ambiguous";

/**
 * The verdict of each release stage for each of MAAS's 23 status codes (maas 3). MAAS gives a released machine the status New if the machine was
 * never commissioned successfully (maas 2.9).
 */
export const RELEASE_VERDICTS = {
  // Each row of `RELEASE_VERDICTS` holds the verdict of `release_maas_node`, followed by the verdict of `power_off_maas_node`.
  [S.new]: row("released", "released"),
  [S.commissioning]: row(A, A),
  [S.failed_commissioning]: row(A, A),
  [S.missing]: row(A, A),
  [S.ready]: row("released", "released"),
  [S.reserved]: row(A, A),
  [S.deployed]: row("release", A),
  [S.retired]: row(A, A),
  [S.broken]: row(A, A),
  [S.deploying]: row(A, A),
  [S.allocated]: row(A, A),
  [S.failed_deployment]: row(A, A),
  [S.releasing]: row("wait", "wait"),
  [S.failed_releasing]: row("release_failed", A),
  [S.disk_erasing]: row("wait", "wait"),
  [S.failed_disk_erasing]: row("erase_failed", A),
  [S.rescue_mode]: row(A, A),
  [S.entering_rescue_mode]: row(A, A),
  [S.failed_entering_rescue_mode]: row(A, A),
  [S.exiting_rescue_mode]: row(A, A),
  [S.failed_exiting_rescue_mode]: row(A, A),
  [S.testing]: row(A, A),
  [S.failed_testing]: row(A, A),
} as const satisfies Record<MaasStatus, Row>;

const TABLE: Readonly<Record<number, Row>> = RELEASE_VERDICTS;

/**
 * The judgement `released` means that MAAS has taken the machine back. The field `accepted` means that MAAS began the release before the release
 * failed, so the installed system is gone.
 */
export type ReleaseJudgement =
  | { readonly kind: "released" | "wait" | "release" }
  | { readonly kind: "failed"; readonly failure: Failure; readonly accepted: boolean };

export const asksWhoOwns = (at: ReleaseStage, status: number): boolean =>
  ["release", "release_failed", "erase_failed"].includes(TABLE[status]?.[at] ?? "ambiguous");

/**
 * The argument `ours` is true if Muster's MAAS user owns the machine. The argument `told` is true if the stage has already reported the failed
 * release, so that the stage may ask for another release.
 */
export function judgeRelease(
  at: ReleaseStage,
  machine: JudgedMachine,
  { ours, told }: { readonly ours: boolean; readonly told: boolean },
): ReleaseJudgement {
  const verdict = TABLE[machine.status]?.[at];
  if (verdict === undefined) return ambiguous(at, machine, "unknown_maas_status");
  switch (verdict) {
    case "released":
    case "wait":
      return { kind: verdict };
    case "release":
      return mayRelease(at, machine, ours);
    case "release_failed":
      if (told) return mayRelease(at, machine, ours);
      return failed(
        failure(
          "bmc_power_failure",
          "power_action_failed",
          `MAAS could not power off ${nameOf(machine)} to release it: ${whyOf(machine)}. Check the BMC, then resume.`,
          machineEvidence(machine),
        ),
      );
    case "erase_failed":
      if (told) return mayRelease(at, machine, ours);
      return failed(
        failure(
          "upstream_transient",
          "erase_failed",
          `MAAS could not erase the disks of ${nameOf(machine)}: ${whyOf(machine)}. Read the output of the erase in MAAS and correct the fault, then resume.`,
          machineEvidence(machine),
        ),
      );
    case "ambiguous":
      return ambiguous(at, machine, "unexpected_maas_status");
  }
}

export const cannotPowerOff = (machine: JudgedMachine): Failure | null =>
  machine.locked ? ambiguity("power_off_maas_node", machine, "machine_locked") : null;

/** Returns a failure if Muster must not power-cycle the machine of a node in service, and null otherwise. */
export function cannotPowerCycle(machine: JudgedMachine, ours: boolean): Failure | null {
  const at = "power_cycle_maas_node";
  if (machine.status !== S.deployed) return ambiguity(at, machine, "unexpected_maas_status", DEPLOYED_AGAIN);
  if (!ours) return ambiguity(at, machine, "machine_owned_by_other");
  return machine.locked ? ambiguity(at, machine, "machine_locked") : null;
}

/** The statuses in which nobody uses a machine, so that Muster may delete the machine in MAAS. */
const FREE: readonly number[] = [S.new, S.ready];
/** Returns a failure if Muster must not delete the released machine in MAAS, and null otherwise. */
export function cannotDelete(machine: JudgedMachine): Failure | null {
  const at = "remove_maas_record";
  if (machine.locked) return ambiguity(at, machine, "machine_locked");
  if (machine.owner !== null) return ambiguity(at, machine, "machine_owned_by_other");
  return FREE.includes(machine.status) ? null : ambiguity(at, machine, "unexpected_maas_status");
}

const failed = (what: Failure): ReleaseJudgement => ({ kind: "failed", failure: what, accepted: true });

function mayRelease(at: ReleaseStage, machine: JudgedMachine, ours: boolean): ReleaseJudgement {
  if (!ours) return ambiguous(at, machine, "machine_owned_by_other");
  return machine.locked ? ambiguous(at, machine, "machine_locked") : { kind: "release" };
}

const TODO = {
  unknown_maas_status:
    "This version of Muster does not know that status. Bring the machine to another status in MAAS, then rerun.",
  unexpected_maas_status:
    "Find out who works on the machine. When it is Deployed again as before, or Ready, rerun; or cancel.",
  machine_locked: "Unlock the machine in MAAS, then resume.",
  machine_owned_by_other: "Have its owner release it in MAAS, then rerun; or cancel.",
} as const;

/** A decommission that cleans the deployed system cannot continue with a machine that MAAS has released. */
const DEPLOYED_AGAIN =
  "Find out who works on the machine. When it is Deployed again as before, rerun; if its system is gone, cancel.";

const ambiguous = (at: ReleaseStage, machine: JudgedMachine, code: keyof typeof TODO): ReleaseJudgement => ({
  kind: "failed",
  failure: ambiguity(at, machine, code),
  accepted: false,
});

function ambiguity(
  at: ReleaseStage | "power_cycle_maas_node" | "remove_maas_record",
  machine: JudgedMachine,
  code: keyof typeof TODO,
  todo: string = TODO[code],
): Failure {
  const owner = machine.owner === null ? "nobody owns it" : `${machine.owner.slice(0, 64)} owns it`;
  const besides = code === "machine_locked" ? "it is locked" : owner;
  const message = `${nameOf(machine)} is '${machine.statusName}' (${machine.status}) in MAAS, and ${besides}, so nothing is done to it at "${at}". ${todo}`;
  return failure("state_ambiguity", code, message, machineEvidence(machine));
}

const nameOf = (machine: JudgedMachine): string => `Machine ${machine.hostname} (${machine.systemId})`;
const whyOf = (machine: JudgedMachine): string =>
  machine.errorDescription || machine.statusMessage || "MAAS gave no reason";
