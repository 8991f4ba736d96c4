/**
 * A process that stands for an agent, and runs the work of one task in a worker process. The process prints the outcome of the work when the work has
 * ended. The arguments of the process are the folder that stands for the host, the task's id, and the input for the worker process.
 */
import { quietAgentLog } from "../fakes/hub/host-folder.ts";
import { performTestWork, workersAt } from "./test-workers.ts";

const [folder = "", taskId = "", input = "{}"] = process.argv.slice(2);
process.stdout.write(`${JSON.stringify({ listening: true })}\n`);
const end = await performTestWork(workersAt(folder, quietAgentLog), taskId, JSON.parse(input));
process.stdout.write(`${JSON.stringify(end)}\n`);
