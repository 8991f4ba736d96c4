/**
 * A process that purges a disk of a host, or of a folder that stands for a host, as the agent's worker does. The arguments of the process are the
 * host's root folder, the id of the task, the serial number of the disk, and the mount points of the disk that the process may unmount. With the
 * variable `restore_only` in its environment, the process only brings the file systems back.
 */
import { purgeAndRestore } from "../../agent/system/storage/purge-and-restore.ts";
import { PURGE_DISK } from "../../agent/system/storage/works.ts";

const [root = "", task_id = "", serial = "S-1", ...may_unmount] = process.argv.slice(2);
const run = {
  root,
  signal: new AbortController().signal,
  throwIfStopped: () => undefined,
  progress: () => undefined,
};
const only = process.env["restore_only"] === undefined ? {} : { restore_only: true };
const input = PURGE_DISK.input.parse({ task_id, serial, wwn: null, seed: null, may_unmount, ...only });
const end = await purgeAndRestore(input, run);
process.stdout.write(`${JSON.stringify(end)}\n`);
