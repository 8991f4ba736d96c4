import { askedFor, runBackupCommand } from "../backup/command.ts";
import { runCommand, type SettingsWith } from "../copy-secrets/command.ts";
import { isWrongSetting, loadConfig } from "./config.ts";
import { isMigrateCommand, runMigrateCommand } from "./migrate-command.ts";

/**
 * Returns the hub's settings with the given kind of secret store. The command `copy-secrets` uses `settingsWith` to open both kinds of secret store
 * (sealed files and Vault) in the same way as a hub.
 */
const settingsWith: SettingsWith = (secrets) => loadConfig({ ...process.env, MUSTER_SECRETS: secrets });

async function runWords(words: readonly string[]): Promise<number> {
  if (isMigrateCommand(words)) {
    await runMigrateCommand(loadConfig(process.env));
    return 0;
  }
  const asked = askedFor(words);
  if (asked === null) return runCommand(words, settingsWith);
  await runBackupCommand(asked, loadConfig(process.env));
  return 0;
}

/**
 * Runs a command such as `copy-secrets` in place of a hub. A command that runs in place of a hub exits with 0 for success, with 78 for invalid
 * settings, and otherwise with its own status.
 */
export async function runWordsAndExit(words: readonly string[]): Promise<never> {
  const status = await runWords(words).catch((error: unknown) => {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    return isWrongSetting(error) ? 78 : 1;
  });
  process.exit(status);
}
