/**
 * A process that runs tasks of the agent in a `TenantWorld`, an isolated environment for tests. Without arguments, the process runs one task after the
 * other: it reads `[TYPE, INPUT]` from each line of stdin and answers each line with a line of JSON on stdout, as the agent's one process runs all its
 * tasks. With the arguments `TYPE INPUT [DIE_BEFORE]`, the process runs one task and writes the task's reply to stdout. If the argument DIE_BEFORE is
 * a number n, the process kills itself before its n-th change of the host, counted from 1.
 */
import { createInterface } from "node:readline";
import { createLog } from "../../agent/log.ts";
import { systemAt } from "../../agent/system/system.ts";
import { revokeUser } from "../../agent/tasks/allocation-revoke-user.ts";
import { handlersFor } from "../../agent/tasks/index.ts";
import { TASKS, type TaskInput, type TaskReply } from "../../shared/tasks/index.ts";
import { isTaskType } from "../../shared/tasks/task-types.ts";
import { countedSystem } from "./counted-system.ts";

const [type, inputText = "null", dieBefore = "0"] = process.argv.slice(2);

const system = countedSystem(
  systemAt(
    "/",
    createLog(() => undefined),
  ),
  async (change) => {
    if (change === Number(dieBefore)) process.kill(process.pid, "SIGKILL");
  },
);
const timing = { termMs: 1_000, killMs: Number(process.env["TEST_KILL_MS"] ?? "30000"), lookEveryMs: 50 };
const handlers = {
  ...handlersFor(system, null as never, null as never),
  "allocation.revoke_user": revokeUser(system, timing),
};

async function perform(name: string, input: unknown): Promise<TaskReply> {
  if (!isTaskType(name)) throw new Error(`There is no task type ${name}.`);
  const handler = handlers[name] as (input: TaskInput, run: unknown) => Promise<TaskReply>;
  const run = { taskId: "task", signal: new AbortController().signal, progress: () => undefined };
  const reply = await handler(TASKS[name].input.parse(input), run);
  if (reply.ok) TASKS[name].result.parse(reply.result);
  return reply;
}

const write = (answer: unknown): void => void process.stdout.write(`${JSON.stringify(answer)}\n`);

if (type !== undefined) write(await perform(type, JSON.parse(inputText)));
else {
  write("ready");
  for await (const line of createInterface({ input: process.stdin })) {
    const [name, input] = JSON.parse(line) as [string, unknown];
    try {
      write({ reply: await perform(name, input) });
    } catch (error) {
      write({ failed: error instanceof Error ? (error.stack ?? error.message) : String(error) });
    }
  }
}
