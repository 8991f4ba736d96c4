/**
 * A process that gives an agent orders of every task type while the disk with the agent's state has a fault. The process prints the agent's replies
 * and changes of the host as JSON. A test starts `disk-fault-process.ts` in a mount namespace of its own. Usage: `disk-fault-process.ts FAULT`, where
 * FAULT is `full` or `read-only`.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { TASKS, type TaskType } from "../../shared/tasks/index.ts";
import { OrderSigner } from "../fakes/hub/orders.ts";
import { JournalledAgent } from "./journalled-agent.ts";
import { hostWithTenant, TASK_INPUTS, TASK_NODE } from "./task-cases.ts";
import { until } from "./until.ts";

const [fault = ""] = process.argv.slice(2);
const signer = new OrderSigner();
const host = hostWithTenant();
const state = host.path("var/lib/muster/agent");
/** The size of a block of tmpfs. */
const BLOCK = 4_096;
/** Fewer bytes than a journal record with the reply to a heartbeat check has. */
const LEAST_RECORD = 300;
const ballast = `${state}/ballast`;

function mount(...args: string[]): void {
  const { status, stderr } = spawnSync("mount", args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`mount ${args.join(" ")}: ${stderr}`);
}
/** Fills the disk by writes that become smaller and smaller. */
function fill(): void {
  for (const bytes of [65_536, 4_096, 512, 1])
    for (let more = true; more; ) {
      try {
        writeFileSync(ballast, Buffer.alloc(bytes), { flag: "a" });
      } catch {
        more = false;
      }
    }
}
/** A worker process of the task before may hold its files a moment longer than its task lasts, and then the kernel answers "busy". */
const makeReadOnly = (): Promise<true> =>
  until("no process to write to the disk", () => {
    mount("-o", "remount,ro", state);
    return true;
  });
const mendDisk = (): void => (fault === "full" ? rmSync(ballast) : mount("-o", "remount,rw", state));
/**
 * Breaks the disk and starts an agent on it. The kernel does not remount a file system read-only while a file on it is open for writing. On a full disk
 * the agent's journal file, if it is already open, may still have room in its last block.
 */
async function agentOnBrokenDisk(): Promise<JournalledAgent> {
  await JournalledAgent.closeAll();
  // A starting agent removes the files of ended worker processes, which would make room on the full disk.
  rmSync(`${state}/work`, { recursive: true, force: true });
  if (fault === "full") fill();
  else await makeReadOnly();
  return JournalledAgent.start(host, signer);
}

mkdirSync(state, { recursive: true });
mount("-t", "tmpfs", "-o", "size=256k", "none", state);

const told: { type: TaskType; broken: unknown; starts: number; changes: number; mended: unknown }[] = [];
for (const type of Object.keys(TASKS) as TaskType[]) {
  const live = await agentOnBrokenDisk();
  const order = signer.sign(TASK_NODE, { type, input: TASK_INPUTS[type] });
  const nextReply = async (count: number) => {
    await until(`a reply of ${type}`, () => (live.replies().length >= count ? true : undefined), { everyMs: 2 });
    return live.replies()[count - 1];
  };
  live.offer(order);
  const broken = await nextReply(1);
  const [starts, changes] = [live.starts(), live.changes()];
  mendDisk();
  const again = signer.sign(TASK_NODE, { ...order, epoch: 2 });
  live.offer(again);
  const mended = await nextReply(2);
  await live.acknowledge(again);
  told.push({ type, broken, starts, changes, mended });
}

// If the disk becomes full during a task, the task's reply reaches the hub although the journal cannot store the reply.
await JournalledAgent.closeAll();
const agent = await JournalledAgent.start(host, signer);
/** The number of bytes by which the journal's file can still grow on a full disk. */
const room = (): number => BLOCK - (statSync(`${state}/journal`).size % BLOCK);
let isFull = false;
let tasks = 0;
while (!isFull) {
  agent.afterStarted(() => {
    if (room() > LEAST_RECORD) return;
    fill();
    isFull = true;
  });
  agent.offer(signer.sign(TASK_NODE, { type: "node.heartbeat_check", input: { nonce: "n".repeat(128) } }));
  tasks += 1;
  await until("the reply", () => (agent.replies().length >= tasks ? true : undefined), { everyMs: 2 });
}
const unstored = agent.replies().at(-1);
rmSync(ballast);
const next = await JournalledAgent.start(host, signer);
next.resend();
const afterRestart = next.replies().at(-1);
process.stdout.write(`${JSON.stringify({ told, unstored, afterRestart })}\n`);
// The journals of the agents are still open at the end of the process.
spawnSync("umount", ["--lazy", state]);
host.remove();
process.exit(0);
