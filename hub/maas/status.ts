export const STATUS_CLASSES = ["busy", "editable", "failed", "deployed", "other"] as const;
export type StatusClass = (typeof STATUS_CLASSES)[number];

/** MAAS's node statuses by code (contract 3). Codes are compared, never names: names are UI text (decision M2). */
export const MAAS_STATUSES = {
  0: { name: "New", class: "other" },
  1: { name: "Commissioning", class: "busy" },
  2: { name: "Failed commissioning", class: "failed" },
  3: { name: "Missing", class: "other" },
  4: { name: "Ready", class: "editable" },
  5: { name: "Reserved", class: "other" },
  6: { name: "Deployed", class: "deployed" },
  7: { name: "Retired", class: "other" },
  8: { name: "Broken", class: "failed" },
  9: { name: "Deploying", class: "busy" },
  10: { name: "Allocated", class: "editable" },
  11: { name: "Failed deployment", class: "failed" },
  12: { name: "Releasing", class: "busy" },
  13: { name: "Releasing failed", class: "failed" },
  14: { name: "Disk erasing", class: "busy" },
  15: { name: "Failed disk erasing", class: "failed" },
  16: { name: "Rescue mode", class: "other" },
  17: { name: "Entering rescue mode", class: "busy" },
  18: { name: "Failed to enter rescue mode", class: "failed" },
  19: { name: "Exiting rescue mode", class: "busy" },
  20: { name: "Failed to exit rescue mode", class: "failed" },
  21: { name: "Testing", class: "busy" },
  22: { name: "Failed testing", class: "failed" },
} as const satisfies Record<number, { name: string; class: StatusClass }>;
export type MaasStatusCode = keyof typeof MAAS_STATUSES;

export const isKnownStatus = (code: number): code is MaasStatusCode => Object.hasOwn(MAAS_STATUSES, code);
/** The name for a code; MAAS's own text is only for codes that this table lacks. */
export const statusName = (code: number): string => (isKnownStatus(code) ? MAAS_STATUSES[code].name : `status ${code}`);
