import { lstatSync, readdirSync, statfsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isMissing } from "./files.ts";

/** The folder in which the file system fusectl shows one folder for each FUSE connection of the machine, in whatever namespace it was mounted. */
const CONNECTIONS = "sys/fs/fuse/connections";
/** The number by which `statfs` names the file system fusectl. */
const FUSECTL = 0x6573_5543;

/**
 * Aborts the FUSE connections of users. A process that waits for the server of a FUSE file system does not end by a signal, but it ends when the
 * kernel aborts the connection. In the file system fusectl, the folder of a FUSE connection belongs to the user who mounted the FUSE file system.
 * Returns how many FUSE connections were aborted, or null if the file system fusectl is not mounted.
 */
export function abortFuse(root: string, isTheirs: (uid: number) => boolean): number | null {
  const folder = join(root, CONNECTIONS);
  try {
    if (statfsSync(folder).type !== FUSECTL) return null;
    return readdirSync(folder).filter((name) => abortOne(join(folder, name), isTheirs)).length;
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
}

function abortOne(connection: string, isTheirs: (uid: number) => boolean): boolean {
  try {
    if (!isTheirs(lstatSync(connection).uid)) return false;
    writeFileSync(join(connection, "abort"), "1", { flag: "r+" });
    return true;
  } catch (error) {
    // A FUSE connection may have ended since `readdirSync` listed it in the file system fusectl.
    if (isMissing(error)) return false;
    throw error;
  }
}
