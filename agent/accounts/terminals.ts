import type { HostProcess } from "../system/processes.ts";
import type { System } from "../system/system.ts";
import { parseAccounts } from "./account-files.ts";
import { runningOf } from "./end-processes.ts";

/**
 * A terminal that a user's process has open. The login manager does not list every open terminal, for example not those of `screen` or of `ssh`
 * without PAM.
 */
export interface OpenTerminal {
  readonly uid: number;
  readonly user: string;
  readonly terminal: number;
}

/** Some processes that run as root, for example after `sudo`, still belong to a user because of the terminal that they use. */
export const holdsTerminalOf =
  (isTheirs: (uid: number) => boolean) =>
  (process: HostProcess): boolean =>
    process.terminal !== 0 && ownerOf(process, isTheirs) !== null;

export async function openTerminals(system: System, isTheirs: (uid: number) => boolean): Promise<OpenTerminal[]> {
  const names = new Map(parseAccounts(await system.read("/etc/passwd")).map(({ uid, name }) => [uid, name]));
  const found = new Map<string, OpenTerminal>();
  for (const process of await runningOf(system.processes, holdsTerminalOf(isTheirs))) {
    const uid = ownerOf(process, isTheirs);
    if (uid === null) continue;
    const { terminal } = process;
    found.set(`${uid}/${terminal}`, { uid, user: names.get(uid) ?? `uid ${uid}`, terminal });
  }
  return [...found.values()];
}

function ownerOf({ uids, loginUid }: HostProcess, isTheirs: (uid: number) => boolean): number | null {
  return uids.find(isTheirs) ?? (loginUid !== null && isTheirs(loginUid) ? loginUid : null);
}
