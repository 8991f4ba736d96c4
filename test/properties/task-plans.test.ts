import { lstatSync, readdirSync, readFileSync, readlinkSync, type Stats } from "node:fs";
import { afterEach, beforeEach, expect, it } from "vitest";
import { z } from "zod";
import { NOLOGIN_START } from "../../agent/system/nologin.ts";
import { handlersFor } from "../../agent/tasks/index.ts";
import { TaskCreate } from "../../shared/api/tasks.ts";
import { defineTask } from "../../shared/tasks/define-task.ts";
import { TASKS, type TaskInput, type TaskReply, type TaskType } from "../../shared/tasks/index.ts";
import { isPlanResult } from "../../shared/tasks/plan.ts";
import type { HostFolder } from "../fakes/hub/host-folder.ts";
import { newTaskId } from "../fakes/hub/orders.ts";
import { hostWithTenant, systemOf, TASK_INPUTS } from "../support/task-cases.ts";

const TYPES = Object.keys(TASKS) as TaskType[];
const PLANNED = TYPES.filter((type) => "plan" in TASKS[type].input.shape);
/** The agent's own notes, and the log of the tools that the test's host was asked to run. */
const OWN = /^(var\/lib\/muster(\/agent(\/.*)?)?|var|var\/lib|calls)$/;
/** The calls of tools that only read. Any other call in a plan is a change of the host. */
const READS = /^(loginctl list-sessions|systemctl (is-|list-|show|--version)|getent )/;

/** The plan of these tasks has no steps on the host of the test, for the given reason. */
const WITHOUT_STEPS: Partial<Record<TaskType, (reply: TaskReply) => void>> = {
  // The task only reads, and its plan is the task itself.
  "node.validate_clean": (reply) => expect(reply).toMatchObject({ ok: true, result: { snapshot: expect.anything() } }),
  // The test's host has no systemd that could start a program with a deadline. The test of the GPU cleaning makes plans with its own tools.
  "node.gpu_scrub": (reply) => expect(reply).toMatchObject({ ok: false, error: "systemd_missing" }),
};

let host: HostFolder;
beforeEach(() => {
  host = hostWithTenant();
  host.tool("getent", "exit 2");
  host.write("etc/muster/agent.json", "{}");
  host.write("etc/nologin", `${NOLOGIN_START}: test\n`);
  host.write("var/lib/muster/agent/drain.json", "{}");
});
afterEach(() => host.remove());

/** Each file of the host with its mode, owner, time of change and bytes. */
function picture(): string[] {
  const names = readdirSync(host.root, { recursive: true, encoding: "utf8" }).filter((name) => !OWN.test(name));
  return names.sort().map((name) => {
    const stat = lstatSync(host.path(name));
    return [name, stat.mode, stat.uid, stat.gid, stat.mtimeMs, contentOf(name, stat)].join(" ");
  });
}
const contentOf = (name: string, stat: Stats): string =>
  stat.isFile() ? readFileSync(host.path(name), "base64") : stat.isSymbolicLink() ? readlinkSync(host.path(name)) : "";

async function carryOut(type: TaskType, input: TaskInput): Promise<TaskReply> {
  const handlers = handlersFor(
    systemOf(host),
    { identity: async () => null, resultOf: () => null },
    { adopt: () => undefined, beforeInventory: async () => undefined },
  );
  const handler = handlers[type] as (input: TaskInput, run: unknown) => Promise<TaskReply>;
  const run = { taskId: newTaskId(), signal: new AbortController().signal, progress: () => undefined };
  return handler(TASKS[type].input.parse(input) as TaskInput, run);
}

const planOf = (type: TaskType) => ({ ...TASK_INPUTS[type], plan: true }) as TaskInput;

it("each task that changes the host has a plan", () => {
  expect(TYPES.filter((type) => TASKS[type].changes === "host" && !PLANNED.includes(type))).toEqual([]);
  expect(PLANNED.length).toBeGreaterThan(10);
});

it("does not compile for a task that changes the host without a plan", () => {
  const spec = { type: "x", leaseSeconds: 1, destructive: false, errors: {} } as const;
  const rest = { ...spec, result: z.null(), progress: z.null() };
  defineTask({ ...rest, changes: "nothing", input: z.strictObject({}) });
  defineTask({ ...rest, changes: "host", input: z.strictObject({ plan: z.boolean() }) });
  // @ts-expect-error The input has no field `plan`.
  expect(defineTask({ ...rest, changes: "host", input: z.strictObject({}) }).changes).toBe("host");
});

/** The tasks that an operator may order themselves, with `plan: false`, and not only as a plan. */
const ORDERED_THEMSELVES: readonly TaskType[] = ["terminal.close"];

it.each(PLANNED)("lets an operator order the plan of %s, and the work itself only where it is harmless", (type) => {
  const { plan: _asked, machine_token: _secret, ...input } = TASK_INPUTS[type] as Record<string, unknown>;
  expect(TaskCreate.safeParse({ type, plan: true, input }).error?.issues).toBeUndefined();
  const wrong = [{ input }, { plan: true, input: { ...input, plan: false } }];
  expect(TaskCreate.safeParse({ type, plan: false, input }).success).toBe(ORDERED_THEMSELVES.includes(type));
  for (const order of wrong) expect(TaskCreate.safeParse({ type, ...order }).success).toBe(false);
});

it.each(PLANNED)("the plan of %s changes no byte of the host and says what the task would do", async (type) => {
  const before = picture();
  const reply = await carryOut(type, planOf(type));
  expect(picture()).toEqual(before);
  expect(host.calls().filter((call) => !READS.test(call))).toEqual([]);
  const judge = WITHOUT_STEPS[type] ?? ((said) => expect(said.ok && isPlanResult(said.result)).toBe(true));
  judge(reply);
  if (reply.ok) TASKS[type].result.parse(reply.result);
});

it.each(["node.drain", "node.undrain", "node.hw_sync_reseed"] as const)(
  "the order of %s without a plan changes the same host",
  async (type) => {
    const before = picture();
    expect(await carryOut(type, TASK_INPUTS[type])).toMatchObject({ ok: true });
    expect(picture()).not.toEqual(before);
  },
);
