import { parseArgs } from "node:util";
import { createLog } from "../../shared/log.ts";
import { connectOnce } from "../db/connect-once.ts";
import { txOn } from "../db/tx.ts";
import { openSecrets, type SecretsSettings } from "../secrets/open.ts";
import { type DatabaseSettings, findDatabase, withDatabaseFault } from "../startup/start-database.ts";
import { makeBackup } from "./make-backup.ts";
import { restoreBackup } from "./restore-backup.ts";
import { toldOfBackup, toldOfRestore } from "./words.ts";

type Settings = DatabaseSettings & { readonly secrets: SecretsSettings };

type Asked =
  | { readonly command: "backup"; readonly folder: string }
  | { readonly command: "restore"; readonly folder: string; readonly replace: boolean; readonly holds: boolean };

/** Returns what the command line asks for, or null for arguments that `backup` and `restore` do not know. */
export function askedFor(words: readonly string[]): Asked | null {
  const [command, ...args] = words;
  try {
    if (command === "backup") {
      const { values } = parseArgs({ args, options: { to: { type: "string" } } });
      return values.to === undefined ? null : { command, folder: values.to };
    }
    if (command !== "restore") return null;
    const flag = { type: "boolean", default: false } as const;
    const options = { from: { type: "string" }, replace: flag, "without-holds": flag } as const;
    const { values } = parseArgs({ args, options });
    const { from, replace, "without-holds": withoutHolds } = values;
    return from === undefined ? null : { command, folder: from, replace, holds: !withoutHolds };
  } catch {
    return null;
  }
}

/** Runs `backup` or `restore`. `backup` and `restore` print what they did, and throw the reason if they changed nothing. */
export async function runBackupCommand(asked: Asked, settings: Settings): Promise<void> {
  const log = createLog("warn");
  const closers: (() => unknown)[] = [];
  try {
    const { url } = await findDatabase(settings, log, closers);
    const client = await withDatabaseFault(settings, url, () => connectOnce(url, `muster-${asked.command}`));
    closers.push(() => client.end());
    const openStore = async () => {
      const { secrets, close } = await openSecrets(settings.secrets, log);
      closers.push(close);
      return secrets;
    };
    const [tx, store] = [txOn(client), settings.secrets];
    const told =
      asked.command === "backup"
        ? toldOfBackup(await makeBackup({ client, db: tx, store, secrets: await openStore() }, asked.folder))
        : toldOfRestore(await restoreBackup({ client, tx, store, openStore }, asked.folder, asked));
    process.stdout.write(`${told.join("\n")}\n`);
  } finally {
    for (const close of closers.reverse()) await close();
  }
}
