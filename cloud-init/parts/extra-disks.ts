import { partFile, shellPart } from "./part.ts";

/** Destructive: makes /shareN of every free disk. Rendered only when the profile enables it (lifecycle 4.3). */
export const extraDisks = shellPart({
  name: "40-extra-disks.sh",
  owner: "muster",
  body: partFile("extra-disks.sh"),
  values: ({ extraDisks: disks }) => (disks.enabled ? { ERASE_SIGNATURES: disks.eraseSignatures } : null),
});
