/**
 * MAAS's 23 machine statuses, and the changes from one status to another that MAAS allows. The simulator checks every change of a machine's status
 * with `mayChange`, except the control API's force-status.
 */
export const STATUS = {
  new: 0,
  commissioning: 1,
  failed_commissioning: 2,
  missing: 3,
  ready: 4,
  reserved: 5,
  deployed: 6,
  retired: 7,
  broken: 8,
  deploying: 9,
  allocated: 10,
  failed_deployment: 11,
  releasing: 12,
  failed_releasing: 13,
  disk_erasing: 14,
  failed_disk_erasing: 15,
  rescue_mode: 16,
  entering_rescue_mode: 17,
  failed_entering_rescue_mode: 18,
  exiting_rescue_mode: 19,
  failed_exiting_rescue_mode: 20,
  testing: 21,
  failed_testing: 22,
} as const;

export type StatusName = keyof typeof STATUS;
export type Status = (typeof STATUS)[StatusName];

export const STATUS_LABEL: Readonly<Record<Status, string>> = {
  0: "New",
  1: "Commissioning",
  2: "Failed commissioning",
  3: "Missing",
  4: "Ready",
  5: "Reserved",
  6: "Deployed",
  7: "Retired",
  8: "Broken",
  9: "Deploying",
  10: "Allocated",
  11: "Failed deployment",
  12: "Releasing",
  13: "Releasing failed",
  14: "Disk erasing",
  15: "Failed disk erasing",
  16: "Rescue mode",
  17: "Entering rescue mode",
  18: "Failed to enter rescue mode",
  19: "Exiting rescue mode",
  20: "Failed to exit rescue mode",
  21: "Testing",
  22: "Failed testing",
};

export const NODE_TRANSITIONS: Readonly<Record<Status, readonly Status[]>> = {
  0: [1, 21, 3, 4, 7, 8, 17],
  1: [2, 4, 7, 3, 0, 8, 21],
  2: [1, 3, 7, 8, 17, 21],
  3: [0, 4, 10, 1, 8, 17, 21],
  4: [17, 1, 10, 5, 7, 3, 8, 21],
  5: [4, 10, 7, 3, 8, 14, 12, 17, 21],
  6: [10, 3, 8, 4, 14, 12, 17, 21],
  7: [0, 4, 3, 8, 17, 21],
  8: [1, 4, 14, 12, 17, 21, 6],
  9: [10, 3, 8, 11, 6, 4, 14, 12],
  10: [4, 7, 3, 8, 9, 14, 12, 17, 21],
  11: [10, 3, 8, 4, 14, 12, 17, 21],
  12: [0, 10, 5, 6, 4, 8, 3, 11, 15, 13],
  13: [12, 14, 4, 8, 21],
  14: [8, 14, 15, 4, 12],
  15: [14, 12, 8, 10, 4, 17, 21],
  16: [8, 19, 21],
  17: [4, 8, 6, 16, 18, 19],
  18: [8, 17, 19, 21],
  19: [0, 8, 2, 4, 5, 10, 11, 6, 3, 7, 13, 15, 16, 18, 20, 22],
  20: [8, 19, 21],
  21: [8, 0, 4, 5, 10, 6, 1, 11, 3, 7, 13, 15, 18, 20, 22],
  22: [1, 8, 3, 17, 21, 4, 6],
};

const statusNames = Object.keys(STATUS) as StatusName[];

export function isStatusName(name: string): name is StatusName {
  return Object.hasOwn(STATUS, name);
}

export function isStatus(code: number): code is Status {
  return statusNames.some((name) => STATUS[name] === code);
}

export function allStatuses(): Status[] {
  return statusNames.map((name) => STATUS[name]);
}

export function mayChange(from: Status, to: Status): boolean {
  return from === to || NODE_TRANSITIONS[from].includes(to);
}

const S = STATUS;

/**
 * The machine statuses in which MAAS allows each operation. MAAS has an error text of its own for each operation that a machine's status does not
 * allow.
 */
export const ALLOWED = {
  commission: [S.new, S.failed_commissioning, S.ready, S.broken],
  abort: [S.commissioning, S.deploying, S.testing, S.disk_erasing],
  deploy: [S.ready, S.allocated],
  release: [
    S.allocated,
    S.reserved,
    S.broken,
    S.deploying,
    S.deployed,
    S.failed_deployment,
    S.failed_disk_erasing,
    S.failed_releasing,
  ],
  releaseNoop: [S.ready, S.releasing],
  lock: [S.deployed, S.deploying],
  networkWrite: [S.new, S.ready, S.failed_testing, S.allocated, S.broken],
  storageWrite: [S.ready],
  test: [
    S.new,
    S.failed_commissioning,
    S.missing,
    S.ready,
    S.reserved,
    S.deployed,
    S.retired,
    S.broken,
    S.allocated,
    S.failed_deployment,
    S.failed_releasing,
    S.failed_disk_erasing,
    S.rescue_mode,
    S.failed_entering_rescue_mode,
    S.failed_exiting_rescue_mode,
    S.failed_testing,
  ],
  rescue: [
    S.new,
    S.failed_commissioning,
    S.missing,
    S.ready,
    S.reserved,
    S.deployed,
    S.retired,
    S.broken,
    S.allocated,
    S.failed_deployment,
    S.failed_disk_erasing,
    S.failed_entering_rescue_mode,
    S.failed_testing,
  ],
  exitRescue: [S.rescue_mode, S.entering_rescue_mode, S.failed_entering_rescue_mode, S.failed_exiting_rescue_mode],
} as const satisfies Record<string, readonly Status[]>;

export function allows(operation: keyof typeof ALLOWED, status: Status): boolean {
  const accepted: readonly Status[] = ALLOWED[operation];
  return accepted.includes(status);
}

/** The machine statuses in which MAAS shows the owner's copy of the storage layout instead of the machine's layout. */
const OWNED_STORAGE: readonly Status[] = [
  S.deployed,
  S.deploying,
  S.allocated,
  S.failed_deployment,
  S.releasing,
  S.failed_releasing,
  S.disk_erasing,
  S.failed_disk_erasing,
  S.rescue_mode,
  S.entering_rescue_mode,
  S.failed_entering_rescue_mode,
  S.exiting_rescue_mode,
  S.failed_exiting_rescue_mode,
  S.testing,
  S.failed_testing,
];

export function showsOwnedStorage(status: Status): boolean {
  return OWNED_STORAGE.includes(status);
}
