/**
 * A process that runs the task `node.gpu_fill` on a folder that stands for a host, and prints the task's reply. The arguments of the process are the
 * folder that stands for the host, the task's id, and the task's input.
 */
import { join } from "node:path";
import { systemAt } from "../../agent/system/system.ts";
import { gpuFill } from "../../agent/tasks/gpu-fill.ts";
import { TaskId } from "../../shared/ids.ts";
import { quietAgentLog } from "../fakes/hub/host-folder.ts";

const [root = "", taskId = "", input = "{}"] = process.argv.slice(2);
const program = [process.execPath, join(import.meta.dirname, "../../agent/main.ts")];
process.stdout.write(`${JSON.stringify({ listening: true })}\n`);
const reply = await gpuFill(systemAt(root, quietAgentLog, program))(JSON.parse(input), {
  taskId: TaskId.parse(taskId),
  signal: new AbortController().signal,
  progress: () => undefined,
});
process.stdout.write(`${JSON.stringify(reply)}\n`);
