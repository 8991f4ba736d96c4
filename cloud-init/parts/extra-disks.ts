import { partFile, shellPart } from "./part.ts";

/**
 * Renders the first-boot script that formats every free disk of the host and mounts it as /shareN, which destroys the disk's data. The script for
 * extra disks is part of the user-data only when the profile enables extra disks (lifecycle 4.3).
 */
export const extraDisks = shellPart({
  name: "40-extra-disks.sh",
  owner: "muster",
  body: partFile("extra-disks.sh"),
  values: ({ extraDisks: disks }) =>
    disks.enabled ? { ERASE_SIGNATURES: disks.eraseSignatures, KEEP_ONLY: disks.keepOnly } : null,
});
