/**
 * Starts a process that carries out a task `node.storage_cleanup` on a folder that stands for a host. A test kills the started process in the middle
 * of the task `node.storage_cleanup`.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { systemAt } from "../../agent/system/system.ts";
import { storageCleanup } from "../../agent/tasks/storage-cleanup.ts";
import { TaskId } from "../../shared/ids.ts";
import { TASKS, type TaskInput } from "../../shared/tasks/index.ts";
import { quietAgentLog } from "../fakes/hub/host-folder.ts";

const AGENT = [process.execPath, join(import.meta.dirname, "../../agent/main.ts")];
const OWN = fileURLToPath(import.meta.url);

export const startChild = (root: string, taskId: string, input: TaskInput<"node.storage_cleanup">): ChildProcess =>
  spawn(process.execPath, [OWN, root, taskId, JSON.stringify(input)], { stdio: "ignore" });

if (process.argv[1] === OWN) {
  const [root = "", taskId = "", input = ""] = process.argv.slice(2);
  const run = { taskId: TaskId.parse(taskId), signal: new AbortController().signal, progress: () => undefined };
  const order = TASKS["node.storage_cleanup"].input.parse(JSON.parse(input));
  await storageCleanup(systemAt(root, quietAgentLog, AGENT))(order, run);
}
