import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { NOLOGIN_START } from "../../agent/system/nologin.ts";
import { handlersFor } from "../../agent/tasks/index.ts";
import { JOURNAL_STATES, type WireReply } from "../../shared/protocol/frames.ts";
import { TASKS, type TaskHandlers, type TaskInput, type TaskReply, type TaskType } from "../../shared/tasks/index.ts";
import { TASK_TYPES } from "../../shared/tasks/task-types.ts";
import type { HostFolder } from "../fakes/hub/host-folder.ts";
import { OrderSigner } from "../fakes/hub/orders.ts";
import { countedSystem } from "../support/counted-system.ts";
import { JournalledAgent, type Kill } from "../support/journalled-agent.ts";
import { inMountNamespace, mayMount } from "../support/mount-namespace.ts";
import { hostWithTenant, systemOf, TASK_INPUTS, TASK_NODE } from "../support/task-cases.ts";
import { until } from "../support/until.ts";

const TYPES = Object.keys(TASKS) as TaskType[];
const signer = new OrderSigner();
let host: HostFolder;
beforeEach(() => {
  host = hostWithTenant();
});
afterEach(async () => {
  await JournalledAgent.closeAll();
  host.remove();
});

const orderOf = (type: TaskType) => signer.sign(TASK_NODE, { type, input: TASK_INPUTS[type] });
const codes = (agent: JournalledAgent): string[] => agent.replies().map((reply) => (reply.ok ? "ok" : reply.error));
const replied = (agent: JournalledAgent) =>
  until("a reply", () => (agent.replies().length > 0 ? true : undefined), { everyMs: 2 });

/** Runs an agent until the test kills the agent, and returns the killed agent and its order. */
async function killedAt(type: TaskType, kill: Kill) {
  const order = orderOf(type);
  const agent = await JournalledAgent.start(host, signer, kill);
  agent.offer(order);
  if (kill.endsWith("reported")) {
    await replied(agent);
    void agent.acknowledge(order);
  }
  await until(`the kill ${kill}`, () => (agent.isDead() ? true : undefined), { everyMs: 2 });
  return { order, agent };
}

const KILLED_BEFORE_START = ["before received", "after received", "before started"] as const;
const KILLED_AFTER_END = ["before reported", "after reported"] as const;
const [AFTER_STARTED, BEFORE_FINISHED, AFTER_FINISHED] = [
  "after started",
  "before finished",
  "after finished",
] as const;

describe.each(TYPES)("an agent that is killed in the task %s", (type) => {
  it.each(KILLED_BEFORE_START)(
    "%s was journalled, has done nothing, and the task is carried out once",
    async (kill) => {
      const { order, agent } = await killedAt(type, kill);
      expect([agent.starts(), agent.changes()]).toEqual([0, 0]);
      const next = await JournalledAgent.start(host, signer);
      next.resend();
      expect(codes(next)).toEqual(kill === "before received" ? [] : ["not_started"]);
      next.offer(kill === "before received" ? order : signer.sign(TASK_NODE, { ...order, epoch: 2 }));
      await until("the task's own reply", () => (next.starts() === 1 && codes(next).length > 0 ? true : undefined));
      await until("the end", () => (next.journal.withState("finished").length === 1 ? true : undefined));
      expect(next.starts()).toBe(1);
    },
  );

  it("after started was journalled, says interrupted, and does not begin again by itself", async () => {
    const { order, agent } = await killedAt(type, AFTER_STARTED);
    expect(agent.starts()).toBe(0);
    const next = await JournalledAgent.start(host, signer);
    next.offer(order);
    await replied(next);
    expect([...new Set(codes(next))]).toEqual(["interrupted"]);
    expect([next.starts(), next.changes()]).toEqual([0, 0]);
  });

  it("before finished was journalled, keeps the end of work outside the agent, else says interrupted", async () => {
    const { order, agent } = await killedAt(type, BEFORE_FINISHED);
    expect(agent.starts()).toBe(1);
    const files = host.calls();
    const next = await JournalledAgent.start(host, signer);
    next.offer(order);
    next.resend();
    await replied(next);
    // The input of work outside the agent's process stays on disk from the work's begin to the end of the task.
    const isContinued = next.starts() === 1;
    if (type === "node.storage_cleanup") expect([isContinued, ...new Set(codes(next))]).toEqual([true, "ok"]);
    if (isContinued) expect(TASK_TYPES[type]).toMatchObject({ worksOutside: true });
    else expect([...new Set(codes(next))]).toEqual(["interrupted"]);
    expect([next.changes(), host.calls()]).toEqual([0, files]);
  });

  it("after finished was journalled, repeats the same reply until the hub has it", async () => {
    const { order, agent } = await killedAt(type, AFTER_FINISHED);
    const [ended] = agent.journal.withState("finished");
    const next = await JournalledAgent.start(host, signer);
    next.resend();
    next.offer(order);
    await until("two replies", () => (next.replies().length >= 2 ? true : undefined), { everyMs: 2 });
    expect(next.replies()).toEqual([ended?.reply, ended?.reply]);
    expect([next.starts(), next.changes()]).toEqual([0, 0]);
  });

  it.each(KILLED_AFTER_END)("%s was journalled, loses no result and begins nothing", async (kill) => {
    const { order, agent } = await killedAt(type, kill);
    const next = await JournalledAgent.start(host, signer);
    next.resend();
    expect(next.replies()).toEqual(kill === "before reported" ? agent.replies().slice(0, 1) : []);
    next.offer(order);
    await until("an answer", () => (next.sent.length > 0 ? true : undefined), { everyMs: 2 });
    if (kill === "after reported") expect(next.sent).toMatchObject([{ type: "task.rejected", reason: "replayed" }]);
    expect([next.starts(), next.changes()]).toEqual([0, 0]);
  });
});

it("kills before and after each write of the journal", () => {
  const killed = [...KILLED_BEFORE_START, AFTER_STARTED, BEFORE_FINISHED, AFTER_FINISHED, ...KILLED_AFTER_END];
  expect(killed).toEqual(JOURNAL_STATES.flatMap((state): Kill[] => [`before ${state}`, `after ${state}`]));
});

interface DiskFault {
  readonly told: readonly { type: TaskType; broken: WireReply; starts: number; changes: number; mended: WireReply }[];
  readonly unstored: WireReply;
  readonly afterRestart: WireReply;
}
const PROGRAM = join(import.meta.dirname, "../support/disk-fault-process.ts");

describe.skipIf(!mayMount)(
  "an agent whose state is on a disk with a fault (SKIPPED where mounting is forbidden)",
  () => {
    it.each([
      ["full", "ENOSPC"],
      ["read-only", "EROFS"],
    ])("starts no task while the disk is %s, says why, and starts the task when the disk is mended", (fault, errno) => {
      const said = inMountNamespace('"$0" "$1" "$2"', process.execPath, PROGRAM, fault);
      const { told, unstored, afterRestart }: DiskFault = JSON.parse(said);
      expect(told.map(({ type }) => type)).toEqual(TYPES);
      for (const { type, broken, starts, changes, mended } of told) {
        expect(broken, type).toMatchObject({
          ok: false,
          error: "not_started",
          message: expect.stringContaining(errno),
        });
        expect([starts, changes], type).toEqual([0, 0]);
        expect(mended, type).not.toMatchObject({ error: "not_started" });
      }
      expect(unstored).toMatchObject({ ok: true });
      expect(afterRestart).toMatchObject({ ok: false, error: "interrupted" });
    });
  },
);

/**
 * Tasks that change the host in the agent's own process. Other tests kill the agent during tasks about tenants' accounts and during work in worker
 * processes, on a real Linux.
 */
describe.each(["node.drain", "node.undrain", "node.hw_sync_reseed"] as const)("the task %s", (type) => {
  const forever = new Promise<never>(() => undefined);
  const run = (dieBefore: number): Promise<TaskReply> => {
    let die = (_dead: null) => {};
    const death = new Promise<null>((resolve) => {
      die = resolve;
    });
    const system = countedSystem(systemOf(host), async (change) => {
      if (change === dieBefore) {
        die(null);
        await forever;
      }
    });
    const handlers: TaskHandlers = handlersFor(
      system,
      { identity: async () => null, resultOf: () => null },
      { adopt: () => undefined, beforeInventory: async () => undefined },
    );
    const handler = handlers[type] as (input: TaskInput, run: unknown) => Promise<TaskReply>;
    const taskId = "00000000-0000-4000-8000-000000000001";
    const told = handler(TASK_INPUTS[type], {
      taskId,
      signal: new AbortController().signal,
      progress: () => undefined,
    });
    return Promise.race([told, death]) as Promise<TaskReply>;
  };

  it("ends in the same state when the agent was killed before any of its changes", async () => {
    const fresh = (): void => {
      host.remove();
      host = hostWithTenant();
      if (type !== "node.undrain") return;
      host.write("var/lib/muster/agent/drain.json", "{}");
      host.write("etc/nologin", `${NOLOGIN_START}: test\n`);
    };
    /** Returns the files of the host, without the log of the tools' calls and without the drain's deadline, which depends on the host's uptime. */
    const state = () =>
      readdirSync(host.root, { recursive: true, encoding: "utf8" })
        .filter((name) => name !== "calls" && statSync(host.path(name)).isFile())
        .sort()
        .map((name) => `${name} ${host.mode(name)} ${host.read(name).replace(/"deadline_uptime":[0-9.]+/, "")}`);
    fresh();
    const wanted = await run(0);
    expect(wanted).toMatchObject({ ok: true });
    const whole = state();
    let kills = 0;
    for (;;) {
      fresh();
      if ((await run(kills + 1)) !== null) break;
      kills += 1;
      expect(await run(0), `after a kill before change ${kills}`).toMatchObject({ ok: true });
      expect(state(), `after a kill before change ${kills}`).toEqual(whole);
    }
    expect(kills).toBeGreaterThan(1);
  });
});
