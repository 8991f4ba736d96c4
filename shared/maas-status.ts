/**
 * MAAS has 23 statuses of a machine, each with a code (maas 3). All tables and queries about the statuses of MAAS machines use the list
 * `MAAS_STATUS`. The hub compares the codes of MAAS's statuses, never their names (decision M2).
 */
export const MAAS_STATUS = {
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
export type MaasStatus = (typeof MAAS_STATUS)[keyof typeof MAAS_STATUS];
