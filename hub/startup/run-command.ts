import { askedFor, runBackupCommand } from "../backup/command.ts";
import { runCommand, type SettingsWith } from "../copy-secrets/command.ts";
import { isWrongSetting, loadConfig } from "./config.ts";
import { isMigrateCommand, runMigrateCommand } from "./migrate-command.ts";

/**
 * Returns the hub's settings with the given kind of secret store. By `settingsWith`, the command `copy-secrets` opens both secret stores in the same
 * way as a hub.
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

/** Runs a command such as `copy-secrets` in place of a hub. The exit status is 0 for success, 78 for invalid settings, and otherwise the command's own. */
export async function runWordsAndExit(words: readonly string[]): Promise<never> {
  const status = await runWords(words).catch((error: unknown) => {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    return isWrongSetting(error) ? 78 : 1;
  });
  process.exit(status);
}
