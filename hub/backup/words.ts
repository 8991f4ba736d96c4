import type { Held } from "./after-restore.ts";
import type { Backup } from "./make-backup.ts";
import type { Restored } from "./restore-backup.ts";

const rowsOf = ({ manifest }: Pick<Backup, "manifest">): string =>
  `${manifest.tables.reduce((sum, { rows }) => sum + rows, 0)} rows of ${manifest.tables.length} tables`;

const missingLines = (missing: readonly string[]): string[] =>
  missing.length === 0
    ? []
    : [
        `The secret store lacks ${missing.length} secrets that the database names, or cannot read them:`,
        ...missing.map((path) => `  ${path}`),
        "Write these credentials again once a hub runs, or restore the secret store from its own backup.",
      ];

const heldLines = ({ nodes, operations }: Held): string[] => [
  ...(nodes === 0
    ? []
    : [
        `${nodes} nodes get no new tenant until you have looked at their hosts and removed the health override \`restore\`.`,
      ]),
  ...(operations === 0 ? [] : [`${operations} operations that clean or release hosts wait for you.`]),
];

export const toldOfBackup = (backup: Backup): string[] => [
  `Backup: ${backup.folder}`,
  `It shows the database as of ${backup.manifest.taken_at}: ${rowsOf(backup)}.`,
  backup.manifest.secrets === "sealed_file"
    ? `It holds ${backup.sealedFiles} sealed secrets, and not the key that opens them. Keep the file \`key\` of the secret store at another place.`
    : "The secrets are in Vault, and not in this backup. Back Vault up now, after the database.",
  ...missingLines(backup.missing),
];

export const toldOfRestore = (restored: Restored): string[] => [
  `Restored the database as of ${restored.manifest.taken_at}: ${rowsOf(restored)}. Sealed secrets added: ${restored.addedSecrets}.`,
  ...missingLines(restored.missing),
  ...heldLines(restored.held),
  'Next: start the hubs, and follow docs/operate.md, section "After a restore".',
];
