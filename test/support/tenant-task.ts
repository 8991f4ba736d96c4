/**
 * A process that runs one task of the agent in a `TenantWorld`, an isolated environment for tests. The arguments of the process are `TYPE INPUT
 * [DIE_BEFORE]`. The process writes the task's reply to stdout. If the argument DIE_BEFORE is a number n, the process kills itself before its n-th
 * change of the host, counted from 1.
 */
import { createLog } from "../../agent/log.ts";
import { type System, systemAt } from "../../agent/system/system.ts";
import { revokeUser } from "../../agent/tasks/allocation-revoke-user.ts";
import { handlersFor } from "../../agent/tasks/index.ts";
import { isTaskType, TASKS, type TaskInput, type TaskReply } from "../../shared/tasks/index.ts";

const [type = "", inputText = "null", dieBefore = "0"] = process.argv.slice(2);
if (!isTaskType(type)) throw new Error(`There is no task type ${type}.`);

/** The operations of `System` that change the host. */
const CHANGES = ["run", "write", "remove", "rename", "makeHome", "writeOwned", "removeConfined"] as const;

/** Returns a `System` that kills its process before the call number `before` of the calls that change the host. */
function mortal(system: System, before: number): System {
  let changes = 0;
  const changed = Object.fromEntries(
    CHANGES.map((name) => {
      const change = system[name] as (...args: readonly unknown[]) => Promise<unknown>;
      const counted = (...args: readonly unknown[]) => {
        changes += 1;
        if (changes === before) process.kill(process.pid, "SIGKILL");
        return change(...args);
      };
      return [name, counted];
    }),
  );
  return { ...system, ...changed };
}

const system = mortal(
  systemAt(
    "/",
    createLog(() => undefined),
  ),
  Number(dieBefore),
);
const timing = { termMs: 1_000, killMs: Number(process.env["TEST_KILL_MS"] ?? "30000"), lookEveryMs: 50 };
const handlers = { ...handlersFor(system, null as never), "allocation.revoke_user": revokeUser(system, timing) };
const handler = handlers[type] as (input: TaskInput, run: unknown) => Promise<TaskReply>;
const run = { taskId: "task", signal: new AbortController().signal, progress: () => undefined };
const reply = await handler(TASKS[type].input.parse(JSON.parse(inputText)), run);
if (reply.ok) TASKS[type].result.parse(reply.result);
process.stdout.write(`${JSON.stringify(reply)}\n`);
