/** A process that stands for an agent with one work: it performs the work to its end and prints the end. Arguments: work folder, task id, input. */
import { quietAgentLog } from "../fakes/hub/host-folder.ts";
import { performTestWork, workersAt } from "./test-workers.ts";

const [folder = "", taskId = "", input = "{}"] = process.argv.slice(2);
process.stdout.write(`${JSON.stringify({ listening: true })}\n`);
const end = await performTestWork(workersAt(folder, quietAgentLog), taskId, JSON.parse(input));
process.stdout.write(`${JSON.stringify(end)}\n`);
