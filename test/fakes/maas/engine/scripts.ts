import type { Machine, ScriptSet, ScriptSetKind, ScriptStatus } from "../state/model.ts";
import { SCRIPT_STATUS } from "../state/model.ts";
import type { Region } from "./region.ts";

export interface Script {
  id: number;
  name: string;
  title: string;
  type: "commissioning" | "testing" | "release";
  tags: readonly string[];
  hardware: "node" | "cpu" | "memory" | "storage" | "network";
  parallel: boolean;
  timeout: string;
  packages: readonly string[];
  parameters: Readonly<Record<string, unknown>>;
  /** Names of the measured values that a commissioning or test script reports. */
  results: readonly string[];
}

const BMC_PARAMETERS = {
  maas_auto_ipmi_user: { max: 20, type: "string", argument_format: "--username={input}" },
  maas_auto_ipmi_k_g_bmc_key: { max: 20, type: "password", argument_format: "--ipmi-k-g={input}" },
  maas_auto_ipmi_user_password: { max: 20, type: "password", argument_format: "--password={input}" },
  maas_auto_ipmi_cipher_suite_id: { max: 2, type: "string", argument_format: "--ipmi-cipher-suite-id={input}" },
  maas_auto_ipmi_user_privilege_level: {
    type: "choice",
    choices: [
      ["USER", "User"],
      ["OPERATOR", "Operator"],
      ["ADMIN", "Administrator"],
    ],
    argument_format: "--ipmi-privilege-level={input}",
  },
} as const;

function script(id: number, name: string, more: Partial<Script> = {}): Script {
  return {
    id,
    name,
    title: name,
    type: "commissioning",
    tags: ["node"],
    hardware: "node",
    parallel: false,
    timeout: "0:05:00",
    packages: [],
    parameters: {},
    results: [],
    ...more,
  };
}

const PARAMETERS = {
  storage: { type: "storage", argument_format: "{path}" },
  bare_storage: { type: "storage" },
  url: {
    type: "url",
    required: true,
    description: "What to ask for, several parted by commas.",
    default: "https://connectivity-check.ubuntu.com",
    allow_list: true,
  },
  interface: { type: "interface" },
  quick_erase: { type: "boolean", argument_format: "--quick-erase" },
  secure_erase: { type: "boolean", argument_format: "--secure-erase" },
} as const;

/** The commissioning and test scripts of a fresh MAAS region, under the names that clients of MAAS use. */
export const SCRIPTS: readonly Script[] = [
  script(1, "20-maas-01-install-lldpd", { packages: ["lldpd"] }),
  script(2, "20-maas-02-dhcp-unconfigured-ifaces"),
  script(3, "30-maas-01-bmc-config", {
    tags: ["bmc-config", "node"],
    packages: ["freeipmi-tools", "ipmitool", "python3-paramiko"],
    parameters: BMC_PARAMETERS,
  }),
  script(4, "20-maas-03-machine-resources", { tags: ["deploy-info", "node"] }),
  script(5, "40-maas-01-machine-config-hints"),
  script(6, "50-maas-01-commissioning", { tags: ["deploy-info", "node"] }),
  script(7, "maas-support-info", { tags: ["deploy-info", "node"], parallel: true }),
  script(8, "maas-lshw", { tags: ["deploy-info", "node"], parallel: true }),
  script(9, "maas-list-modaliases", { tags: ["deploy-info", "node"], parallel: true }),
  script(10, "maas-get-fruid-api-data", { parallel: true }),
  script(11, "maas-kernel-cmdline", { parallel: true }),
  script(12, "maas-serial-ports", { tags: ["deploy-info", "node"], parallel: true }),
  script(13, "maas-capture-lldpd", { parallel: true }),
  script(14, "smartctl-validate", {
    type: "testing",
    tags: ["commissioning", "storage"],
    hardware: "storage",
    parallel: true,
    packages: ["smartmontools"],
    parameters: { storage: PARAMETERS.storage },
  }),
  script(15, "smartctl-short", {
    type: "testing",
    tags: ["storage"],
    hardware: "storage",
    parallel: true,
    packages: ["smartmontools"],
    parameters: { storage: PARAMETERS.storage },
  }),
  script(16, "smartctl-long", {
    type: "testing",
    tags: ["storage"],
    hardware: "storage",
    parallel: true,
    packages: ["smartmontools"],
    parameters: { storage: PARAMETERS.storage },
  }),
  script(17, "smartctl-conveyance", {
    type: "testing",
    tags: ["storage"],
    hardware: "storage",
    parallel: true,
    packages: ["smartmontools"],
    parameters: { storage: PARAMETERS.storage },
  }),
  script(18, "memtester", { type: "testing", tags: ["memory"], hardware: "memory", packages: ["memtester"] }),
  script(19, "stress-ng-cpu-long", { type: "testing", tags: ["cpu"], hardware: "cpu", packages: ["stress-ng"] }),
  script(20, "stress-ng-cpu-short", { type: "testing", tags: ["cpu"], hardware: "cpu", packages: ["stress-ng"] }),
  script(21, "stress-ng-memory-long", {
    type: "testing",
    tags: ["memory"],
    hardware: "memory",
    packages: ["stress-ng"],
  }),
  script(22, "stress-ng-memory-short", {
    type: "testing",
    tags: ["memory"],
    hardware: "memory",
    packages: ["stress-ng"],
  }),
  script(23, "ntp", { type: "testing", tags: ["ntp", "network"], hardware: "network", parallel: true }),
  script(24, "badblocks", {
    type: "testing",
    tags: ["storage"],
    hardware: "storage",
    parallel: true,
    parameters: { storage: PARAMETERS.bare_storage },
    results: ["badblocks", "read_errors", "write_errors", "comparison_errors"],
  }),
  script(25, "badblocks-destructive", {
    type: "testing",
    tags: ["destructive", "storage"],
    hardware: "storage",
    parallel: true,
    parameters: { storage: PARAMETERS.bare_storage },
    results: ["badblocks", "read_errors", "write_errors", "comparison_errors"],
  }),
  script(26, "7z", {
    type: "testing",
    tags: ["cpu"],
    hardware: "cpu",
    packages: ["p7zip-full"],
    results: ["compression_ru_mips", "decompression_ru_mips", "compression_rating_mips", "decompression_rating_mips"],
  }),
  script(27, "fio", {
    type: "testing",
    tags: ["storage", "destructive"],
    hardware: "storage",
    parallel: true,
    packages: ["fio"],
    parameters: { storage: PARAMETERS.storage },
    results: [
      "random_read",
      "random_write",
      "sequential_read",
      "random_read_iops",
      "sequential_write",
      "random_write_iops",
      "sequential_read_iops",
      "sequential_write_iops",
    ],
  }),
  script(28, "internet-connectivity", {
    type: "testing",
    tags: ["internet", "network-validation", "network"],
    hardware: "network",
    parallel: true,
    parameters: { url: PARAMETERS.url, interface: PARAMETERS.interface },
  }),
  script(29, "gateway-connectivity", {
    type: "testing",
    tags: ["network-validation", "network"],
    hardware: "network",
    parallel: true,
    parameters: { interface: PARAMETERS.interface },
  }),
  script(30, "rack-controller-connectivity", {
    type: "testing",
    tags: ["network-validation", "network"],
    hardware: "network",
    parallel: true,
    parameters: { interface: PARAMETERS.interface },
  }),
  script(31, "wipe-disks", {
    type: "release",
    tags: ["wipe", "disk", "node"],
    packages: ["nvme-cli"],
    parameters: { quick_erase: PARAMETERS.quick_erase, secure_erase: PARAMETERS.secure_erase },
  }),
];

/** Selects commissioning or test scripts by name or tag. `pickScripts` returns `{ unknown }` for a word that is neither a script's name nor a tag. */
export function pickScripts(type: Script["type"], words: readonly string[]): Script[] | { unknown: string } {
  if (words.length === 1 && words[0] === "none") return [];
  const picked = new Set<Script>();
  for (const word of words) {
    const matches = SCRIPTS.filter((one) => one.type === type && (one.name === word || one.tags.includes(word)));
    if (matches.length === 0) return { unknown: word };
    for (const match of matches) picked.add(match);
  }
  return [...picked];
}

export function startScriptSet(
  region: Region,
  machine: Machine,
  kind: ScriptSetKind,
  scripts: readonly { name: string; parameters: Readonly<Record<string, unknown>> }[],
): ScriptSet {
  const past = machine.scriptSets[kind];
  if (past !== null && past !== undefined) machine.pastScriptSets.push(past);
  const now = region.now();
  const set: ScriptSet = {
    id: region.next("script_set"),
    kind,
    status: SCRIPT_STATUS.pending,
    results: scripts
      .toSorted((a, b) => (a.name < b.name ? -1 : 1))
      .map(({ name, parameters }) => ({
        id: region.next("script_result"),
        name,
        status: SCRIPT_STATUS.pending,
        created: now,
        updated: now,
        ended: null,
        parameters: { ...parameters },
      })),
  };
  machine.scriptSets[kind] = set;
  return set;
}

export function endScriptSet(region: Region, machine: Machine, kind: ScriptSetKind, status: ScriptStatus): void {
  const set = machine.scriptSets[kind];
  if (set === null) return;
  set.status = status;
  for (const result of set.results) {
    result.status = status;
    result.updated = region.now();
    if (status === SCRIPT_STATUS.passed || status === SCRIPT_STATUS.failed) result.ended = region.now();
  }
}

export function commissioningPassed(machine: Machine): boolean {
  return machine.scriptSets.commissioning?.status === SCRIPT_STATUS.passed;
}
