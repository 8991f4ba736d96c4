/**
 * A process that purges a disk of a host, or of a folder that stands for a host, as the agent's worker does. The arguments of the process are the
 * folder, the id of the task, and the serial number of the disk.
 */
import { purgeDisk } from "../../agent/system/storage/purge-disk.ts";
import { PURGE_DISK } from "../../agent/system/storage/works.ts";

const [root = "", task_id = "", serial = "S-1"] = process.argv.slice(2);
const run = {
  root,
  signal: new AbortController().signal,
  throwIfStopped: () => undefined,
  progress: () => undefined,
};
const end = await purgeDisk(PURGE_DISK.input.parse({ task_id, serial, wwn: null, seed: null }), run);
process.stdout.write(`${JSON.stringify(end)}\n`);
