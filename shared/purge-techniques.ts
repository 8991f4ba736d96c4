/** The techniques that the hub accepts as the purge or clear of a disk, each with its class of method (NIST SP 800-88 Rev. 2). */
export const PURGE_METHODS = {
  "NVMe sanitize, block erase": "purge",
  "NVMe sanitize, crypto erase": "purge",
  "NVMe sanitize, overwrite with zeros": "purge",
  "NVMe format, crypto erase": "clear",
  "NVMe format, user data erase": "clear",
  "ATA sanitize, block erase": "purge",
  "ATA sanitize, crypto scramble": "purge",
  "ATA sanitize, overwrite with zeros": "purge",
  "ATA security erase, enhanced": "clear",
  "ATA security erase": "clear",
} as const;
export type PurgeTitle = keyof typeof PURGE_METHODS;

export const isPurgeTitle = (title: unknown): title is PurgeTitle =>
  typeof title === "string" && Object.hasOwn(PURGE_METHODS, title);
