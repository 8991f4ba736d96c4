/**
 * A process that fills the free space of a folder's file system as the agent's worker does, and prints the outcome. The arguments of the process are
 * a folder and the number of bytes that stay free on the folder's file system.
 */
import { fillFreeSpaceStep } from "../../agent/system/storage/free-space.ts";

const [path = "", reserve = ""] = process.argv.slice(2);
const run = {
  root: "/",
  signal: new AbortController().signal,
  throwIfStopped: () => undefined,
  progress: () => undefined,
};
const end = await fillFreeSpaceStep(path, run, () => Number(reserve));
process.stdout.write(`${JSON.stringify(end)}\n`);
