import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { TaskId } from "../../shared/ids.ts";
import { STORAGE_LIMITS, storageCleanupSeconds } from "../../shared/storage-works.ts";
import { TASKS, type TaskInput } from "../../shared/tasks/index.ts";
import { DiskHost, mayLoop } from "../../test/fakes/disks/disk-host.ts";
import { KEEP_COMPILE_CACHE, quietAgentLog } from "../../test/fakes/hub/host-folder.ts";
import { newTaskId } from "../../test/fakes/hub/orders.ts";
import { startChild } from "../../test/support/purge-agent.ts";
import { until } from "../../test/support/until.ts";
import { systemAt } from "../system/system.ts";
import { TaskCancelled } from "../tasks/cancelled.ts";
import { storageCleanup } from "../tasks/storage-cleanup.ts";

const PROGRAM = [process.execPath, join(import.meta.dirname, "../main.ts")];
/** The tests replace `systemd-run` by a program that starts a command in a separate session, so that the command outlives the agent. */
const SYSTEMD_RUN = `#!/bin/sh
${KEEP_COMPILE_CACHE}
while [ "$1" != -- ]; do shift; done; shift
setsid "$@" < /dev/null >> "$MUSTER_ROOT/state/worker-log" 2>&1 &
`;

let host: DiskHost;
let taskId: TaskId;
beforeEach(() => {
  if (!mayLoop) return;
  host = new DiskHost();
  host.write("run/systemd/system/.keep", "");
  host.write("usr/bin/systemd-run", SYSTEMD_RUN, 0o755);
  taskId = newTaskId();
});
afterEach(() => host?.remove());

const input = (more: Partial<TaskInput<"node.storage_cleanup">> = {}): TaskInput<"node.storage_cleanup"> => ({
  scope: "local",
  temporary: false,
  scratch: [],
  shares: [],
  free_space: false,
  weka_prefixes: [],
  disks: [],
  disk_pool: ["S-0", "S-1"],
  plan: false,
  ...more,
});
async function clean(more: Partial<TaskInput<"node.storage_cleanup">> = {}) {
  const run = { taskId, signal: new AbortController().signal, progress: () => undefined };
  const reply = await storageCleanup(systemAt(host.root, quietAgentLog, PROGRAM))(input(more), run);
  if (!reply.ok) throw new Error(reply.message);
  return TASKS["node.storage_cleanup"].result.parse(reply.result).steps;
}
function workerFile(part: number, file: string) {
  const folder = `var/lib/muster/agent/work/${taskId}`;
  const name = host.has(folder) ? host.parts(folder).find((one) => one.endsWith(`-${part}`)) : undefined;
  if (name === undefined || !host.has(`${folder}/${name}/${file}`)) return undefined;
  return JSON.parse(readFileSync(host.path(`${folder}/${name}/${file}`), "utf8"));
}
const workerPid = (part: number): number | undefined => workerFile(part, "started.json")?.pid;

describe.skipIf(!mayLoop)("the disks of a storage cleanup (SKIPPED without loop devices)", () => {
  it("are planned with their technique, or with the reason against it, and stay as they are", async () => {
    const [step] = await clean({ plan: true });
    expect(step).toMatchObject({
      step: "disk",
      target: "S-1",
      outcome: "planned",
      message: "The disk would be purged by NVMe sanitize, block erase. All its data would be lost.",
      evidence: { model: "FAST SSD", serial: "S-1", firmware: "F1", device: "nvme0n1" },
    });
    host.drive({ sanicap: 0, oacs: 0 });
    expect(await clean({ plan: true })).toMatchObject([
      { outcome: "planned", evidence: { reason: "no_purge_command" } },
    ]);
    host.write("proc/self/mountinfo", `21 1 ${host.number} / /data rw - ext4 /dev/nvme0n1 rw\n`);
    expect(await clean({ plan: true })).toMatchObject([{ outcome: "planned", evidence: { reason: "mounted" } }]);
    expect([host.commands(), host.hasSecret(), host.has("var/lib/muster")]).toEqual([[], true, false]);
  });

  it("are planned with their file systems if they are mounted at a scratch folder of the profile", async () => {
    const mounted = async () =>
      (await clean({ plan: true, scratch: ["/scratch"] })).filter(({ step }) => step === "disk");
    mkdirSync(host.path("scratch"));
    host.write("proc/self/mountinfo", `21 1 ${host.number} / /scratch rw - ext4 /dev/nvme0n1 rw\n`);
    host.write("etc/fstab", "LABEL=data /scratch ext4 nofail 0 2\n");
    expect(await mounted()).toMatchObject([{ outcome: "planned", evidence: { reason: "tool_missing" } }]);
    for (const tool of ["mkfs.ext4", "mount", "umount"]) host.tool(tool, "exit 9");
    host.tool("blkid", "echo TYPE=ext4; echo LABEL=data; echo UUID=6d757374-6572-4000-8000-000000000042");
    expect(await mounted()).toMatchObject([
      {
        outcome: "planned",
        message:
          "The disk would be purged by NVMe sanitize, block erase. All its data would be lost. Unmounted before, made again with label and UUID, and mounted again: /scratch (ext4, label data, by /etc/fstab).",
      },
    ]);
    expect(host.calls().filter((call) => /^(mkfs|u?mount)/.test(call))).toEqual([]);
  });

  it("of whose security erase nobody knows the end are named with their password after a cancel by the hub", async () => {
    host.remove();
    host = new DiskHost("ata");
    host.write("run/systemd/system/.keep", "");
    host.write("usr/bin/systemd-run", SYSTEMD_RUN, 0o755);
    host.drive({ word59: 0 });
    host.at("--user-master-2", "exec sleep 600");
    const abort = new AbortController();
    const run = { taskId, signal: abort.signal, progress: () => undefined };
    const ending = Promise.resolve(storageCleanup(systemAt(host.root, quietAgentLog, PROGRAM))(input(), run));
    const failed = expect(ending).rejects.toThrow(
      /^Cancelled\. The disk S-1 \(\/dev\/sda\) may have the password MusterErase, .*--security-unlock MusterErase \/dev\/sda and then .*--security-disable MusterErase/,
    );
    const isErasing = () => host.calls().some((call) => call.includes("--security-erase"));
    await until("the erase", () => (isErasing() ? true : undefined));
    const worker = await until("the worker", () => workerPid(0));
    abort.abort(new TaskCancelled("cancelled", "Cancelled."));
    process.kill(worker, "SIGKILL");
    await failed;
    await expect(ending).rejects.toBeInstanceOf(TaskCancelled);
    expect(host.read("state/password")).toBe("2\n");
  });

  it("of which the host has none are a failure, and no disk is touched", async () => {
    expect(await clean({ disk_pool: ["S-8", "S-9"] })).toMatchObject([
      { step: "disk", target: "data disks", outcome: "failed", evidence: { reason: "pool_mismatch" } },
    ]);
    expect(await clean({ disk_pool: [], disks: [{ serial: "S-9", wwn: null }] })).toMatchObject([
      { target: "S-9", outcome: "failed", evidence: { reason: "not_found" } },
    ]);
    expect([host.commands(), host.hasSecret()]).toEqual([[], true]);
  });

  it("are not purged if the host has the controller of a listed disk, but not its namespace", async () => {
    for (const [file, text] of Object.entries({ serial: "S-2", subsysnqn: "nqn.y", transport: "pcie" }))
      host.write(`sys/class/nvme/nvme1/${file}`, `${text}\n`);
    expect(await clean({ disk_pool: ["S-2", "S-3"] })).toMatchObject([
      {
        target: "S-2",
        outcome: "failed",
        message: "The NVMe controller nvme1 has the serial number and shows no disk.",
        evidence: { reason: "not_found", media_kind: "disk", serial: "S-2" },
      },
    ]);
  });

  it("are purged once although agent and worker are killed in the middle", async () => {
    host.drive({ looks: 1_000_000 });
    const agent = startChild(host.root, taskId, input());
    await until("the command", () => (host.commands().length === 1 ? true : undefined));
    agent.kill("SIGKILL");
    // The restarted agent follows the worker process that the killed agent had started.
    const ending = clean();
    const first = await until("the worker", () => workerPid(0));
    process.kill(first, "SIGKILL");
    // The second worker process reads the disk's sanitize status while the sanitize still runs.
    await until("the second worker", () => workerPid(1));
    host.drive({ looks: 2 });
    expect(await ending).toMatchObject([
      { step: "disk", target: "S-1", outcome: "ok", evidence: { method: "purge", serial: "S-1", firmware: "F1" } },
    ]);
    expect([host.commands(), host.hasSecret()]).toEqual([["nvme sanitize /dev/nvme0 --sanact=2"], false]);
    const given = [0, 1].map((part) => workerFile(part, "order.json")?.deadline_seconds);
    expect(given).toEqual([STORAGE_LIMITS.disk.seconds, STORAGE_LIMITS.disk.seconds]);
    const order = input({ disks: [{ serial: "S-1", wwn: null }], disk_pool: [] });
    expect(given.reduce((sum, one) => sum + one, 0)).toBeLessThan(storageCleanupSeconds(order));
    expect(await clean()).toMatchObject([{ outcome: "ok" }]);
    expect(host.commands()).toHaveLength(1);
  });
});
