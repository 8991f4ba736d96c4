/**
 * A process that runs one task of the agent in a `TenantWorld`, an isolated environment for tests. The arguments of the process are `TYPE INPUT
 * [DIE_BEFORE]`. The process writes the task's reply to stdout. If the argument DIE_BEFORE is a number n, the process kills itself before its n-th
 * change of the host, counted from 1.
 */
import { createLog } from "../../agent/log.ts";
import { systemAt } from "../../agent/system/system.ts";
import { revokeUser } from "../../agent/tasks/allocation-revoke-user.ts";
import { handlersFor } from "../../agent/tasks/index.ts";
import { isTaskType, TASKS, type TaskInput, type TaskReply } from "../../shared/tasks/index.ts";
import { countedSystem } from "./counted-system.ts";

const [type = "", inputText = "null", dieBefore = "0"] = process.argv.slice(2);
if (!isTaskType(type)) throw new Error(`There is no task type ${type}.`);

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
const handlers = { ...handlersFor(system, null as never), "allocation.revoke_user": revokeUser(system, timing) };
const handler = handlers[type] as (input: TaskInput, run: unknown) => Promise<TaskReply>;
const run = { taskId: "task", signal: new AbortController().signal, progress: () => undefined };
const reply = await handler(TASKS[type].input.parse(JSON.parse(inputText)), run);
if (reply.ok) TASKS[type].result.parse(reply.result);
process.stdout.write(`${JSON.stringify(reply)}\n`);
