import { STATE_AMBIGUITY } from "./ambiguous-states.ts";
import { BMC_POWER_FAILURE } from "./bmc-failures.ts";
import type { Ending, Rule } from "./failure-rule.ts";

const AWAY = { retry: "until_deadline" } as const;

/**
 * This file holds the failure taxonomy of lifecycle 4.7 as data. A failure's class decides what the workflow engine does, and the failure's code says
 * what happened. The compiler checks that each failure class has only the codes of its closed list. Failure codes with `unexpected` in their name
 * stand for answers of an outside system that nobody foresaw.
 */
export const FAILURES = {
  input_config_error: {
    retry: "never",
    endsAs: "failed_manual_intervention",
    compensate: false,
    nextVerb: "rerun",
    nextAction:
      "Correct the site's configuration, then rerun; where the request itself is wrong, cancel the onboarding and start a new one.",
    codes: [
      "sku_unknown",
      "site_disabled",
      "profile_unknown",
      "profile_disabled",
      "maas_rejected_input",
      "user_data_invalid",
      "gpu_claim_impossible",
    ],
    exceptions: {
      gpu_claim_impossible: {
        nextAction: "Lower gpu_claim_level of the node's profile, or correct the node's SKU, then rerun.",
      },
    },
  },
  site_capability_missing: {
    retry: "never",
    endsAs: "failed_manual_intervention",
    compensate: false,
    nextVerb: "resume",
    nextAction: "Give the site what is missing (credentials, rights, image, subnet), probe the site, then resume.",
    codes: [
      "credentials_missing",
      "maas_token_rejected",
      "maas_forbidden",
      "image_missing",
      "script_missing",
      "subnet_missing",
      "secret_missing",
      "secret_corrupt",
      "secret_store_forbidden",
      "secret_store_login_refused",
      "secret_store_untrusted",
      "secret_store_misconfigured",
    ],
    exceptions: {
      secret_corrupt: { nextAction: "Write the secret that the evidence names again, or restore it, then resume." },
      secret_store_forbidden: {
        nextAction: "Give the hub's policy in Vault the rights on the path that the evidence names, then resume.",
      },
      secret_store_login_refused: {
        nextAction:
          "Write a new token or secret ID into the file that the hub's settings name, which needs no restart, then resume.",
      },
      secret_store_untrusted: {
        nextAction:
          "Find out whether Vault's certificate is the right one; correct it, or VAULT_CACERT and VAULT_ADDR, then resume.",
      },
      secret_store_misconfigured: {
        nextAction: "Correct the hub's settings of its secret store, restart the hub, then resume.",
      },
    },
  },
  upstream_transient: {
    retry: "bounded",
    endsAs: "failed_retryable",
    compensate: false,
    nextVerb: "retry",
    nextAction: "Check that MAAS and the secret store answer, then retry the stage.",
    codes: [
      "maas_unreachable",
      "maas_timeout",
      "maas_unavailable",
      "maas_conflict_transient",
      "maas_server_error",
      "maas_bad_answer",
      "secret_store_unavailable",
      "secret_store_timeout",
      "secret_store_sealed",
      "secret_conflict",
      "hub_internal_error",
      "deploy_place_timeout",
      "drain_failed",
      "uninstall_failed",
      "cleaning_failed",
      "tenant_not_restored",
      "agent_outdated",
      "release_timeout",
      "erase_failed",
    ],
    exceptions: {
      maas_unreachable: AWAY,
      maas_timeout: AWAY,
      maas_unavailable: AWAY,
      maas_conflict_transient: AWAY,
      maas_server_error: AWAY,
      // A person must examine a release in MAAS that does not finish (lifecycle 5.8).
      release_timeout: {
        endsAs: "failed_manual_intervention",
        nextVerb: "resume",
        nextAction:
          "Look in MAAS at what the machine's release or disk erasing waits for and see to it, then resume; or raise the profile's release_timeout_seconds.",
      },
      erase_failed: {
        retry: "never",
        endsAs: "failed_manual_intervention",
        nextVerb: "resume",
        nextAction:
          "Read in MAAS why the machine's disks could not be erased and mend it, then resume: the release is asked for again.",
      },
      secret_store_unavailable: { ...AWAY, nextAction: "Bring the secret store back, then retry the stage." },
      secret_store_timeout: { ...AWAY, nextAction: "Find out why the secret store is slow, then retry the stage." },
      secret_store_sealed: { ...AWAY, nextAction: "Unseal Vault, then retry the stage." },
      secret_conflict: {
        nextAction: "Find out who else writes the secret that the evidence names, then retry the stage.",
      },
      deploy_place_timeout: {
        nextAction:
          "See to the onboardings of the profile that hold its places to deploy, or raise its deploy_max_parallel, then retry the stage.",
      },
      // After a few failed attempts to drain the host, a person must find out why the agent cannot drain it (lifecycle 5.8).
      drain_failed: {
        endsAs: "failed_manual_intervention",
        nextVerb: "resume",
        nextAction: "Read the agent's log on the host and mend what it complains of, then resume; or cancel the drain.",
      },
      // A host that the agent could not clean gets no tenant until a person has examined the host (decision C1).
      cleaning_failed: {
        endsAs: "failed_manual_intervention",
        nextVerb: "resume",
        nextAction:
          "Read which steps failed and why, correct the cause on the host, then resume; or cancel, which quarantines the node.",
      },
      // If the tenant's account is not restored, the tenant has an instance to which nobody can log in (decision N11).
      tenant_not_restored: {
        endsAs: "failed_manual_intervention",
        nextVerb: "resume",
        nextAction:
          "Correct the cause on the host, then resume; or cancel, which quarantines the node, and release the instance.",
      },
      agent_outdated: {
        retry: "never",
        endsAs: "failed_manual_intervention",
        nextVerb: "resume",
        nextAction:
          "Update the agent on the host to the hub's version, then resume; or cancel. In the stage check_disks, force continues without the comparison of the disks.",
      },
      uninstall_failed: {
        nextVerb: "resume",
        nextAction:
          "Read the agent's log on the host and mend what it complains of, then resume; or cancel the remove. Where it cannot be mended: revoke the node's certificates, which ends the agent's connection, then force; what Muster put on the host stays there.",
      },
    },
  },
  bmc_power_failure: BMC_POWER_FAILURE,
  pxe_discovery_failure: {
    retry: "bounded",
    endsAs: "failed_manual_intervention",
    compensate: false,
    nextVerb: "resume",
    nextAction: "Check PXE boot order, the PXE VLAN and the rack controller's DHCP, then resume.",
    codes: ["discovery_timeout", "commissioning_failed", "commissioning_timeout"],
  },
  hardware_mismatch: {
    retry: "never",
    endsAs: "failed_manual_intervention",
    compensate: false,
    nextVerb: "resume",
    nextAction:
      "Compare the machine's inventory in MAAS with what the profile and SKU expect; correct either, then resume.",
    codes: [
      "boss_disk_missing",
      "boss_disk_ambiguous",
      "pxe_interface_missing",
      "testing_failed",
      "sku_mismatch",
      "host_unhealthy",
      "hardware_unread",
    ],
    exceptions: {
      sku_mismatch: {
        nextAction:
          "Repair the host, or correct its SKU, then resume: the agent looks at the hardware again. A host that cannot be repaired is cancelled and removed.",
      },
      host_unhealthy: {
        nextAction:
          "Do what the message says about the host's GPUs, disks or memory, then resume: the agent looks at the hardware again.",
      },
      hardware_unread: {
        nextAction: "Read the agent's log on the host, and see that the agent is connected, then resume.",
      },
      testing_failed: {
        nextAction:
          "Read the test results in MAAS. Where the hardware is good enough, override the failed testing there; else mend it. Then resume: an overridden machine goes on, and one that still is Failed testing is tested again.",
      },
    },
  },
  deploy_cloud_init_failure: {
    retry: "bounded",
    endsAs: "failed_retryable",
    compensate: true,
    nextVerb: "rerun",
    nextAction: "Read the deploy's evidence and MAAS's installation log, then rerun.",
    codes: ["deploy_failed", "datasource_failure", "deploy_timeout", "datasource_retry_exhausted"],
    exceptions: {
      // Before the failure `datasource_retry_exhausted`, the engine has repeated the deploy as often as the profile allows (lifecycle 4.11).
      datasource_retry_exhausted: {
        endsAs: "failed_manual_intervention",
        nextAction: "Check the route from the host to MAAS's metadata service while it boots, then rerun.",
      },
    },
  },
  post_deploy_connectivity_failure: {
    retry: "bounded",
    endsAs: "failed_manual_intervention",
    compensate: false,
    nextVerb: "resume",
    nextAction: "Check the route from the host to the hub and the host's first-boot log, then resume.",
    codes: ["agent_not_connected", "host_bootstrap_failed", "site_bootstrap_failed", "agent_unreachable"],
    exceptions: {
      site_bootstrap_failed: {
        retry: "never",
        nextAction:
          "The site's owners look at their bundle: its output is in /var/log/cloud-init-output.log on the host. Remove the cause, run systemctl restart muster-bootstrap there, then resume.",
      },
      host_bootstrap_failed: {
        retry: "never",
        nextAction:
          "Remove what the evidence names, run systemctl restart muster-bootstrap on the host, then resume. The output is in /var/log/cloud-init-output.log.",
      },
      agent_unreachable: {
        nextAction:
          "Bring the host's agent back (power, network, the route to the hub), then resume; force only a host that is gone for good.",
      },
    },
  },
  hardware_sync_failure: {
    retry: "bounded",
    endsAs: "failed_manual_intervention",
    compensate: false,
    nextVerb: "resume",
    nextAction: "Check the host's hardware-sync units and the route from the host to the rack controller, then resume.",
    codes: ["token_not_emitted", "reseed_failed", "sync_unhealthy"],
  },
  agent_enrollment_failure: {
    retry: "bounded",
    endsAs: "failed_manual_intervention",
    compensate: false,
    nextVerb: "resume",
    nextAction: "Read the agent's log on the host; check that the hub's address and CA are right there, then resume.",
    codes: [
      "enrollment_timeout",
      "token_expired",
      "enrollment_refused",
      "agent_distrusts_hub",
      "host_clock_wrong",
      "agent_unhealthy",
    ],
    exceptions: {
      agent_distrusts_hub: {
        nextAction:
          "The host's user-data carries another CA than this hub's: see which hub it was made for, and whether this hub's secret store was replaced. Put the hub's CA on the host and resume, or restart clean, which deploys it with the right one.",
      },
      enrollment_refused: {
        nextAction:
          "See which token the host has and whether another host has used it. Resume once the host may enroll, or restart clean, which gives it a new one.",
      },
      host_clock_wrong: {
        nextAction: "Set the host's clock and see to its time service (timedatectl set-ntp true), then resume.",
      },
    },
  },
  state_ambiguity: STATE_AMBIGUITY,
} as const satisfies Record<string, Rule>;

export type FailureClass = keyof typeof FAILURES;
export type FailureCode<C extends FailureClass = FailureClass> = (typeof FAILURES)[C]["codes"][number];
export const FAILURE_CLASSES = Object.keys(FAILURES) as FailureClass[];

/** The name under which a failure's evidence says that a compensation failed for good, so that effects outside the database remain. */
export const NOT_UNDONE = "compensation_failed";
const ENDING_NOT_UNDONE: Ending = {
  endsAs: "failed_manual_intervention",
  nextVerb: "restart_clean",
  nextAction:
    "What it did could not be undone. See to what the evidence names under compensation_failed, then restart clean or cancel: either undoes it first.",
};

/**
 * The rule for a failure (whether to retry, and which status the workflow gets) is the rule of its failure class, changed by the exceptions for its
 * failure code.
 */
export function ruleOf(
  failed: Pick<Failure, "class" | "code"> & { readonly evidence?: Evidence },
): Omit<Rule, "codes" | "exceptions"> {
  const { codes: _codes, exceptions, ...rule }: Rule = FAILURES[failed.class];
  if (failed.evidence !== undefined && NOT_UNDONE in failed.evidence) return { ...rule, ...ENDING_NOT_UNDONE };
  return { ...rule, ...exceptions?.[failed.code] };
}

/**
 * A failure's evidence consists of facts for the operator (lifecycle 4.12), and its size is limited. A failure's evidence contains no secret and no
 * complete answer of another system.
 */
export type Evidence = Readonly<Record<string, string | number | boolean | null | readonly string[]>>;

export type Failure = {
  [C in FailureClass]: {
    readonly class: C;
    readonly code: FailureCode<C>;
    readonly message: string;
    readonly evidence: Evidence;
  };
}[FailureClass];

export function failure<C extends FailureClass>(
  cls: C,
  code: FailureCode<C>,
  message: string,
  evidence: Evidence = {},
): Failure {
  return { class: cls, code, message, evidence } as Extract<Failure, { class: C }>;
}
