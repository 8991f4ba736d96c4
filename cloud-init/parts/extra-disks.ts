import { partFile, shellPart } from "./part.ts";

/**
 * Renders the part that formats every free disk as a share, mounted as /shareN, which destroys the disk's data. The extra-disks part is rendered only
 * when the profile enables extra disks (lifecycle 4.3).
 */
export const extraDisks = shellPart({
  name: "40-extra-disks.sh",
  owner: "muster",
  body: partFile("extra-disks.sh"),
  values: ({ extraDisks: disks }) =>
    disks.enabled ? { ERASE_SIGNATURES: disks.eraseSignatures, KEEP_ONLY: disks.keepOnly } : null,
});
