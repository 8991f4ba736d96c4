/** The failures of a BMC that refuses or ignores a request are a part of the failure taxonomy in `failures.ts`. */
export const BMC_POWER_FAILURE = {
  retry: "bounded",
  endsAs: "failed_manual_intervention",
  compensate: false,
  nextVerb: "resume",
  nextAction: "Check the BMC's address, credentials and cabling, then resume.",
  codes: [
    "bmc_unreachable",
    "power_action_failed",
    "power_state_unknown",
    "bmc_no_answer",
    "bmc_login_refused",
    "bmc_untrusted",
    "bmc_tool_missing",
  ],
  exceptions: {
    // After a restart, a MAAS region answers requests before its rack controllers have connected to it.
    bmc_unreachable: { retry: "until_deadline" },
    bmc_no_answer: {
      nextAction:
        "Check the BMC's address and cabling, and the hub's route to it (IPMI: UDP 623, Redfish: TCP 443), then resume; or add the machine in MAAS by hand with that BMC address, then resume.",
    },
    // Many BMCs lock a user's login after several failed attempts.
    bmc_login_refused: {
      retry: "never",
      nextAction:
        "Write the BMC's login again, for the site or as a power-credential override of this host, then resume. It was tried once.",
    },
    bmc_untrusted: {
      retry: "never",
      nextAction:
        "Give the BMC a certificate of the CA that MUSTER_BMC_CACERT names, or take that setting from the hub, then resume.",
    },
    bmc_tool_missing: {
      retry: "never",
      nextAction:
        "Install ipmitool where the hub runs (Debian and Ubuntu: apt-get install ipmitool), then resume; or add the machine in MAAS by hand with that BMC address, then resume.",
    },
    power_state_unknown: {
      nextAction:
        "Check the BMC's address, credentials and cabling, then resume. Where MAAS controls no power of the machine, power it off by hand and cancel: it stays released.",
    },
  },
} as const;
