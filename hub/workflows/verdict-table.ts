import { type Failure, failure } from "../../shared/failures.ts";
import type { MaasMachine } from "../maas/port.ts";

/** Where a machine's status is judged. `configure`: links and storage; `recover`: release back to Ready, in recovery and in compensation. */
export const JUDGED_AT = ["commission", "ready", "configure", "deploy", "deployed", "recover"] as const;
export type JudgedAt = (typeof JUDGED_AT)[number];

/**
 * What a stage does on seeing a status. `..._if_ours`: only when this onboarding deployed the machine and our MAAS user owns it; else
 * the machine's state is nobody's we know of, which is `ambiguous` (decision M2).
 */
export type TableVerdict =
  | "go_on"
  | "act"
  | "act_if_ours"
  | "adopt_if_ours"
  | "wait"
  | "abort"
  | "release"
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
): Row => ({ commission, ready, configure, deploy, deployed, recover });
const A = "ambiguous";
const W = "wait";
const ADOPT = "adopt_if_ours";
const FAILED = "deploy_failed_if_ours";

/** All 23 statuses of MAAS by code (contract 3), each at each place. */
export const VERDICTS = {
  //                              commission               ready                   configure  deploy         deployed  recover
  /* New */ 0: row("act", A, A, A, A, A),
  /* Commissioning */ 1: row("go_on", W, W, A, A, A),
  /* Failed commissioning */ 2: row("act", "commissioning_failed", A, A, A, A),
  /* Missing */ 3: row(A, A, A, A, A, A),
  /* Ready */ 4: row("go_on", "go_on", "act", "act", A, "go_on"),
  /* Reserved */ 5: row(A, A, A, A, A, A),
  /* Deployed */ 6: row(ADOPT, ADOPT, ADOPT, ADOPT, "go_on", "release"),
  /* Retired */ 7: row(A, A, A, A, A, A),
  /* Broken */ 8: row(A, A, A, A, A, A),
  /* Deploying */ 9: row(ADOPT, ADOPT, ADOPT, ADOPT, W, "abort"),
  /* Allocated */ 10: row(ADOPT, ADOPT, ADOPT, "act_if_ours", FAILED, "release"),
  /* Failed deployment */ 11: row(A, A, A, FAILED, FAILED, "release"),
  /* Releasing */ 12: row(W, W, W, W, A, W),
  /* Releasing failed */ 13: row("power_failed", "power_failed", "power_failed", "power_failed", A, "power_failed"),
  /* Disk erasing */ 14: row(W, W, W, W, A, W),
  /* Failed disk erasing */ 15: row(A, A, A, A, A, A),
  /* Rescue mode */ 16: row(A, A, A, A, A, A),
  /* Entering rescue mode */ 17: row(A, A, A, A, A, A),
  /* Failed to enter rescue mode */ 18: row(A, A, A, A, A, A),
  /* Exiting rescue mode */ 19: row(A, A, A, A, A, A),
  /* Failed to exit rescue mode */ 20: row(A, A, A, A, A, A),
  /* Testing */ 21: row("go_on", W, W, W, A, A),
  /* Failed testing */ 22: row("testing_failed", "testing_failed", A, A, A, A),
} as const satisfies Record<number, Row>;

export const READY = 4;
export const DEPLOYED = 6;

const TABLE: Readonly<Record<number, Row>> = VERDICTS;

/** `adopt`: this onboarding has already brought the machine past here. */
export type Judgement =
  | { readonly kind: "go_on" | "act" | "adopt" | "wait" | "abort" | "release" | "deploy_failed" }
  | { readonly kind: "failed"; readonly failure: Failure };

/** `ours`: this onboarding meant to deploy the machine, and our MAAS user owns it. */
export function judge(at: JudgedAt, machine: MaasMachine, ours: boolean): Judgement {
  const known = TABLE[machine.status];
  if (known === undefined) return ambiguous(at, machine, "unknown_maas_status");
  const verdict = known[at];
  switch (verdict) {
    case "go_on":
    case "wait":
      return { kind: verdict };
    case "act":
    case "abort":
    case "release":
      return machine.locked ? ambiguous(at, machine, "machine_locked") : { kind: verdict };
    case "act_if_ours":
      return ours ? { kind: "act" } : ambiguous(at, machine, "machine_owned_by_other");
    case "adopt_if_ours":
      return ours ? { kind: "adopt" } : ambiguous(at, machine, "unexpected_maas_status");
    case "deploy_failed_if_ours":
      return ours ? { kind: "deploy_failed" } : ambiguous(at, machine, "unexpected_maas_status");
    case "commissioning_failed":
    case "testing_failed": {
      const what = verdict === "testing_failed" ? "its hardware tests" : "commissioning";
      const message = `${nameOf(machine)} failed ${what} in MAAS: ${whyOf(machine)}. Read the script results in MAAS, then resume.`;
      return { kind: "failed", failure: failure("pxe_discovery_failure", verdict, message, machineEvidence(machine)) };
    }
    case "power_failed": {
      const message = `MAAS could not power off ${nameOf(machine)} to release it: ${whyOf(machine)}. Check the BMC, then resume.`;
      return {
        kind: "failed",
        failure: failure("bmc_power_failure", "power_action_failed", message, machineEvidence(machine)),
      };
    }
    case "ambiguous":
      return ambiguous(at, machine, "unexpected_maas_status");
  }
}

type AmbiguityCode = "unknown_maas_status" | "unexpected_maas_status" | "machine_locked" | "machine_owned_by_other";

function ambiguous(at: JudgedAt, machine: MaasMachine, code: AmbiguityCode): Judgement {
  const locked = code === "machine_locked" ? ", and it is locked" : "";
  const message = `${nameOf(machine)} is '${machine.statusName}' (${machine.status}) in MAAS${locked}, which nothing of this onboarding explains at "${at}". Look at the machine in MAAS, then adopt its state or restart clean.`;
  return { kind: "failed", failure: failure("state_ambiguity", code, message, machineEvidence(machine)) };
}

const nameOf = (machine: MaasMachine): string => `Machine ${machine.hostname} (${machine.systemId})`;
const whyOf = (machine: MaasMachine): string =>
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

/** What an operator needs to know of the machine (lifecycle 4.12); bounded. */
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
