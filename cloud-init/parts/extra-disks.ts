import { partFile, shellPart } from "./part.ts";

/**
 * The part that makes /shareN of every free disk, which destroys data. The part is rendered only when the profile enables extra disks (lifecycle
 * 4.3).
 */
export const extraDisks = shellPart({
  name: "40-extra-disks.sh",
  owner: "muster",
  body: partFile("extra-disks.sh"),
  values: ({ extraDisks: disks }) => (disks.enabled ? { ERASE_SIGNATURES: disks.eraseSignatures } : null),
});
