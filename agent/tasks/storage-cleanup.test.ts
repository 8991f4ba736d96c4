import { mkdirSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { TaskId } from "../../shared/ids.ts";
import { TASKS, type TaskInput } from "../../shared/tasks/index.ts";
import { HostFolder, quietAgentLog } from "../../test/fakes/hub/host-folder.ts";
import { newTaskId } from "../../test/fakes/hub/orders.ts";
import { type LayoutEntry, layoutJournal } from "../system/storage/layout-journal.ts";
import { type System, systemAt } from "../system/system.ts";
import { TaskCancelled } from "./cancelled.ts";
import { storageCleanup } from "./storage-cleanup.ts";

/** The agent's own program, with which the tests start worker processes. */
const PROGRAM = [process.execPath, join(import.meta.dirname, "../main.ts")];

const SCRATCH: LayoutEntry["layout"]["parts"][number] = {
  partition: null,
  path: "/scratch",
  type: "ext4",
  label: null,
  uuid: "6d757374-6572-4000-8000-000000000042",
  mounted_by: "/etc/fstab",
  options: "nofail",
  uid: 0,
  gid: 0,
  mode: 0o755,
};

let host: HostFolder;
let system: System;
let abort: AbortController;
let taskId: TaskId;
beforeEach(() => {
  host = new HostFolder();
  system = systemAt(host.root, quietAgentLog, PROGRAM);
  abort = new AbortController();
  taskId = newTaskId();
  host.write("tmp/tenant/file", "secret");
  host.write("var/tmp/file", "secret");
  host.write("scratch/deep/file", "secret");
  host.write("etc/passwd", "root");
});
afterEach(() => host.remove());

const input = (more: Partial<TaskInput<"node.storage_cleanup">> = {}) => ({
  scope: "local" as const,
  temporary: true,
  scratch: ["/scratch"],
  shares: [],
  free_space: false,
  weka_prefixes: ["/mnt/weka"],
  disks: [],
  plan: false,
  ...more,
});
const clean = (more: Partial<TaskInput<"node.storage_cleanup">> = {}) =>
  storageCleanup(system)(input(more), { taskId, signal: abort.signal, progress: () => undefined });

async function steps(more: Partial<TaskInput<"node.storage_cleanup">> = {}): Promise<string[]> {
  const reply = await clean(more);
  if (!reply.ok) throw new Error(reply.message);
  const { steps } = TASKS["node.storage_cleanup"].result.parse(reply.result);
  return steps.map(({ step, target, outcome }) => `${step} ${target} ${outcome}`);
}

describe("the storage cleanup", () => {
  it("empties the temporary folders and the scratch folders, and nothing else", async () => {
    expect(await steps()).toEqual(["temporary /tmp ok", "temporary /var/tmp ok", "scratch /scratch ok"]);
    expect([host.has("tmp/tenant"), host.has("var/tmp/file"), host.has("scratch/deep")]).toEqual([false, false, false]);
    expect([host.has("tmp"), host.has("var/tmp"), host.has("scratch"), host.has("etc/passwd")]).toEqual([
      true,
      true,
      true,
      true,
    ]);
  });

  it("changes nothing if only the plan is asked for", async () => {
    expect(await steps({ plan: true, shares: ["/share1"], free_space: true })).toEqual([
      "temporary /tmp planned",
      "temporary /var/tmp planned",
      "scratch /scratch planned",
      "share /share1 planned",
      "free_space /tmp planned",
      "free_space /var/tmp planned",
      "free_space /scratch planned",
      "free_space /share1 planned",
    ]);
    expect([host.has("tmp/tenant/file"), host.has("scratch/deep/file")]).toEqual([true, true]);
    expect(host.has(`var/lib/muster/agent/work/${taskId}`)).toBe(false);
  });

  it("skips a scratch folder that the host lacks, and fails for a data disk that is not mounted", async () => {
    host.write("share1/file", "of the system disk");
    expect(
      await steps({ temporary: false, scratch: ["/none"], shares: ["/share1", "/share2"], free_space: true }),
    ).toEqual([
      "scratch /none skipped",
      "share /share1 failed",
      "share /share2 failed",
      "free_space /none skipped",
      "free_space /share1 skipped",
      "free_space /share2 skipped",
    ]);
    expect(host.has("share1/file")).toBe(true);
  });

  it("fails for a folder whose disk an earlier task unmounted, and for every folder if it cannot know", async () => {
    host.write("proc/self/mountinfo", "21 1 8:1 / / rw - ext4 /dev/sda1 rw\n");
    mkdirSync(host.path("sys/class/block"), { recursive: true });
    const entry: LayoutEntry = {
      format: "muster-layout/1",
      serial: "S-9",
      task_id: newTaskId(),
      state: "unmounted",
      is_intact: true,
      device: "sdb",
      layout: { table: null, parts: [SCRATCH] },
    };
    const journal = layoutJournal(host.root, "S-9");
    journal.write(entry);
    const reply = await clean({ temporary: false, scratch: ["/scratch", "/other"] });
    expect(reply).toMatchObject({
      result: {
        steps: [
          {
            target: "/scratch",
            outcome: "failed",
            message: expect.stringContaining("The disk S-9 (sdb) is not mounted as before for /scratch"),
            evidence: { reason: "not_mounted", disk: "S-9", repair: expect.stringContaining("mount /scratch") },
          },
          { target: "/other", outcome: "skipped" },
        ],
      },
    });
    taskId = newTaskId();
    host.write("var/lib/muster/agent/layout/0.json", "{");
    journal.write({ ...entry, state: "restored" });
    expect(await steps({ temporary: false, shares: ["/share1"] })).toEqual([
      "scratch /scratch failed",
      "share /share1 failed",
    ]);
    taskId = newTaskId();
    rmSync(host.path("var/lib/muster/agent/layout/0.json"));
    expect(await steps({ temporary: false })).toEqual(["scratch /scratch ok"]);
  });

  it("fails for a folder at, above or below which fstab mounts a disk that is not mounted", async () => {
    host.write("proc/self/mountinfo", "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n");
    const fails = async (path: string): Promise<void> => {
      host.write("etc/fstab", `UUID=1 ${path} ext4 nofail 0 2\n`);
      taskId = newTaskId();
      const reply = await clean({ temporary: false });
      if (!reply.ok) throw new Error(reply.message);
      expect(reply.result.steps).toMatchObject([
        { outcome: "failed", message: expect.stringContaining(`mount ${path}`), evidence: { reason: "not_mounted" } },
      ]);
    };
    for (const path of ["/scratch", "/scratch/deep"]) await fails(path);
    host.write("proc/self/mountinfo", "2 1 8:17 / /scratch rw - ext4 /dev/sdb1 rw\n");
    host.write("etc/fstab", "UUID=1 /scratch ext4 nofail 0 2\nUUID=2 /other ext4 nofail 0 2\n");
    taskId = newTaskId();
    expect(await steps({ temporary: false })).toEqual(["scratch /scratch ok"]);
  });

  it("returns the results of ended steps after a restart of the agent, and does not run them again", async () => {
    await steps({ temporary: false });
    host.write("scratch/of-the-next-tenant", "");
    system = systemAt(host.root, quietAgentLog, PROGRAM);
    expect(system.workers.inputToContinue(taskId)).toEqual(input({ temporary: false }));
    expect(await steps({ temporary: false })).toEqual(["scratch /scratch ok"]);
    expect(host.has("scratch/of-the-next-tenant")).toBe(true);
  });

  it("skips the Weka client on a host without one, and cleans tokens and fstab all the same", async () => {
    host.write("etc/passwd", "root:x:0:0:root:/root:/bin/sh\nada:x:1000:1000::/home/ada:/bin/sh\n");
    host.write("home/ada/.weka/auth-token.json", "{}");
    host.write("etc/fstab", "UUID=1 / ext4 defaults 0 1\nweka/fs /mnt/weka/a wekafs net=x 0 0\n");
    host.write("proc/self/mountinfo", "21 1 8:1 / / rw - ext4 /dev/sda1 rw\n");
    expect(await steps({ scope: "weka" })).toEqual([
      "weka_mounts wekafs skipped",
      "weka_tokens ~/.weka/auth-token.json ok",
      "weka_fstab /etc/fstab ok",
    ]);
    expect(host.has("home/ada/.weka/auth-token.json")).toBe(false);
    expect(host.read("etc/fstab")).toBe("UUID=1 / ext4 defaults 0 1\n");
    expect(host.has("tmp/tenant/file")).toBe(true);
  });

  it("never says that it unmounted Weka where no systemd enforces a deadline", async () => {
    host.write("proc/self/mountinfo", "30 21 0:50 / /mnt/weka rw - wekafs weka/fs rw\n");
    const [mounts] = await steps({ scope: "weka" });
    expect(mounts).toBe("weka_mounts wekafs failed");
  });

  it("purges no disk on a host without systemd, which would enforce the deadline", async () => {
    host.write("sys/devices/pci0/sdb/serial", "S-1\n");
    host.write("sys/devices/pci0/sdb/ro", "0\n");
    mkdirSync(host.path("sys/class/block"), { recursive: true });
    symlinkSync(host.path("sys/devices/pci0/sdb"), host.path("sys/class/block/sdb"));
    host.write("proc/self/mountinfo", "21 1 8:1 / / rw - ext4 /dev/sda1 rw\n");
    const disks = [
      { serial: "S-1", wwn: null },
      { serial: "S-2", wwn: null },
    ];
    expect(await steps({ temporary: false, scratch: [], disks })).toEqual(["disk S-1 failed", "disk S-2 failed"]);
    expect(await steps({ temporary: false, scratch: [], disks, plan: true })).toEqual([
      "disk S-1 planned",
      "disk S-2 planned",
    ]);
    host.write("proc/self/mountinfo", "21 1 8:16 / / rw - ext4 /dev/sdb rw\n");
    expect(await steps({ temporary: false, scratch: [], disks: disks.slice(0, 1) })).toEqual(["disk S-1 failed"]);
  });

  it("begins nothing after a cancel", async () => {
    abort.abort(new TaskCancelled("cancelled", "Cancelled by the hub."));
    await expect(clean()).rejects.toThrow("Cancelled by the hub.");
    expect(host.has("tmp/tenant/file")).toBe(true);
  });

  it("changes nothing if its state cannot be written", async () => {
    host.write("var/lib/muster/agent/work", "a file where the folder belongs");
    expect(await clean()).toMatchObject({ ok: false, error: "not_recorded" });
    expect(host.has("tmp/tenant/file")).toBe(true);
  });
});
