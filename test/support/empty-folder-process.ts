/**
 * A process that empties a folder as the agent's worker does, and prints the outcome. The arguments of the process are the host's root folder, the
 * path of the folder to empty, and the use of that folder.
 */
import { emptyFolderStep } from "../../agent/system/storage/empty-folder-step.ts";

const [root = "", path = "", use = ""] = process.argv.slice(2);
const run = {
  root,
  signal: new AbortController().signal,
  throwIfStopped: () => undefined,
  progress: () => undefined,
};
process.stdout.write(`${JSON.stringify({ listening: path })}\n`);
const end = await emptyFolderStep(
  { path, use: use === "temporary" ? "temporary" : "scratch", must_be_mount: use === "share" },
  run,
  "working_folder",
);
process.stdout.write(`${JSON.stringify(end)}\n`);
