import { spawn } from "node:child_process";
import { mkdirSync, symlinkSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { TaskId } from "../../../shared/ids.ts";
import { DiskHost, type DriveState, mayLoop } from "../../../test/fakes/disks/disk-host.ts";
import { newTaskId } from "../../../test/fakes/hub/orders.ts";
import { inMountNamespace } from "../../../test/support/mount-namespace.ts";
import type { WorkRun } from "../workers/define-work.ts";
import { PURGE_TIMING, type PurgeTiming, purgeDisk } from "./purge-disk.ts";
import { type StepEnd, StepEnd as StepEndSchema } from "./works.ts";

let host: DiskHost;
let taskId: TaskId;
let abort: AbortController;
beforeEach(() => {
  taskId = newTaskId();
  abort = new AbortController();
});
afterEach(() => host.remove());

const SEED = "ab".repeat(32);
const QUICK: PurgeTiming = { ...PURGE_TIMING, lookEveryMs: 20, mostMisses: 3 };
async function purge(more: { wwn?: string; task?: TaskId; timing?: PurgeTiming } = {}): Promise<StepEnd> {
  const run: WorkRun = {
    root: host.root,
    signal: abort.signal,
    throwIfStopped: () => abort.signal.throwIfAborted(),
    progress: () => undefined,
  };
  const input = { task_id: more.task ?? taskId, serial: "S-1", wwn: more.wwn ?? null, seed: SEED, may_unmount: [] };
  return StepEndSchema.parse(await purgeDisk(input, run, more.timing ?? QUICK));
}
const reasonOf = ({ outcome, evidence }: StepEnd): string => `${outcome} ${String(evidence["reason"])}`;
const FOLDER = "var/lib/muster/agent/purge";
const journalFile = (): string => `${FOLDER}/${host.parts(FOLDER)[0]}`;
const journal = () => JSON.parse(host.read(journalFile()));
/** The test stops the worker process while it waits for the end of a sanitize, as a kill would. */
async function purgeAndStop(): Promise<void> {
  host.drive({ looks: 1_000 });
  const ending = purge();
  while (host.commands().length === 0) await new Promise((resolve) => setTimeout(resolve, 20));
  abort.abort(new Error("stopped"));
  await expect(ending).rejects.toThrow("stopped");
  abort = new AbortController();
}

describe.skipIf(!mayLoop)("the purge of an NVMe disk (SKIPPED without loop devices)", () => {
  beforeEach(() => {
    host = new DiskHost();
  });

  it("erases all blocks, waits for the disk's log, and keeps the evidence of the record", async () => {
    host.drive({ looks: 2 });
    expect(host.hasSecret()).toBe(true);
    expect(await purge({ wwn: "eui.1" })).toEqual({
      outcome: "ok",
      message: "NVMe sanitize, block erase: the disk reports the end, and all 704 blocks read only the byte 0x00.",
      evidence: {
        media_kind: "disk",
        model: "FAST SSD",
        serial: "S-1",
        firmware: "F1",
        device: "nvme0n1",
        tool: "nvme",
        tool_version: "2.8",
        bytes_total: 4_194_304,
        technique: "NVMe sanitize, block erase",
        status_before: "SSTAT 0x0, SPROG 65535, SCDW10 0x0",
        status_after: "SSTAT 0x101, SPROG 65535, SCDW10 0x2",
        verification: "markers at 704 blocks of 4096 bytes",
        sample_seed: SEED,
        verification_result: "all 704 blocks read only the byte 0x00",
        method: "purge",
        bytes_treated: 4_194_304,
      },
    });
    expect(host.hasSecret()).toBe(false);
    expect(host.commands()).toEqual(["nvme sanitize /dev/nvme0 --sanact=2"]);
  });

  it.each<[string, Partial<DriveState>, string, string]>([
    ["crypto erase", { sanicap: 1, erases: "random" }, "ok undefined", "nvme sanitize /dev/nvme0 --sanact=4"],
    ["overwrite", { sanicap: 4 }, "ok undefined", "nvme sanitize /dev/nvme0 --sanact=3 --owpass=1 --ovrpat=0"],
    [
      "format",
      { sanicap: 0 },
      "ok undefined",
      "nvme format /dev/nvme0 --namespace-id=1 --ses=1 --lbaf=1 --pi=2 --pil=1 --ms=1 --force --timeout=7200000",
    ],
    [
      "format with another key",
      { sanicap: 0, fna: 4, erases: "random" },
      "ok undefined",
      "nvme format /dev/nvme0 --namespace-id=1 --ses=2 --lbaf=1 --pi=2 --pil=1 --ms=1 --force --timeout=7200000",
    ],
  ])("by %s", async (_what, state, end, command) => {
    host.drive(state);
    const step = await purge();
    expect([reasonOf(step), host.commands(), host.hasSecret()]).toEqual([end, [command], false]);
    expect(step.evidence["method"]).toBe(command.includes("format") ? "clear" : "purge");
  });

  it.each<[string, Partial<DriveState>, string]>([
    ["the sanitize fails", { fails: true }, "failed sanitize_failed"],
    ["the disk does another command", { accepts: "other" }, "failed other_technique"],
    ["the disk refuses the command", { accepts: "refused" }, "failed start_refused"],
    ["the tool hides that the disk refused", { accepts: "refused", exitsWell: true }, "failed start_refused"],
    ["the disk says that it is done and did nothing", { erases: "nothing" }, "failed sample_differs"],
    ["a block erase leaves other content", { erases: "random" }, "failed sample_differs"],
    ["a format does nothing", { sanicap: 0, erases: "nothing" }, "failed sample_differs"],
  ])("never says ok if %s", async (_what, state, end) => {
    host.drive(state);
    const step = await purge();
    expect([reasonOf(step), step.evidence["method"]]).toEqual([end, undefined]);
    expect(host.commands()).toHaveLength(1);
    expect(await purge()).toEqual(step);
    expect(host.commands()).toHaveLength(1);
  });

  it.each<[string, Partial<DriveState>, string]>([
    ["the controller has another serial number than Linux says", { serial: "S-2" }, "failed other_disk"],
    ["a sanitize of somebody else runs", { status: 2, action: 2, looks: 1_000 }, "failed sanitize_running"],
    ["the disk has no command", { sanicap: 0, oacs: 0 }, "unsupported no_purge_command"],
    ["another host has a controller", { cmic: 2, controllers: [7, 8] }, "failed foreign_controllers"],
    ["a part has no namespace", { sanicap: 0, unallocated: 4096 }, "failed hidden_capacity"],
    ["a fixed namespace is hidden", { sanicap: 0, oacs: 2, namespaces: 2 }, "failed hidden_namespaces"],
    ["a namespace is hidden from the host", { sanicap: 0, oacs: 10, namespaces: 2 }, "failed hidden_namespaces"],
  ])("sends nothing if %s", async (_what, state, end) => {
    host.drive(state);
    expect([reasonOf(await purge()), host.commands(), host.hasSecret()]).toEqual([end, [], true]);
  });

  it("sends nothing if the disk is mounted in another namespace", () => {
    const script = `mkfs.ext4 -q -F "$0"; mkdir -p "$1"; mount "$0" "$1"; exec "$2" "$3" "$4" "$5"`;
    const program = `${import.meta.dirname}/../../../test/support/purge-process.ts`;
    const told = inMountNamespace(script, host.loop, host.path("mnt"), process.execPath, program, host.root, taskId);
    expect(JSON.parse(told.trim().split("\n").at(-1) ?? "")).toMatchObject({
      outcome: "failed",
      evidence: { reason: "in_use" },
      message: expect.stringContaining("EBUSY"),
    });
    expect(host.commands()).toEqual([]);
  });

  it("sends nothing if a process has the disk open, by whatever name, or the device file is another device", async () => {
    const reader = spawn("sh", ["-c", `exec 3<"${host.loop}"; echo open; exec sleep 600`], {
      stdio: ["ignore", "pipe", "ignore"],
    });
    try {
      await new Promise((resolve) => reader.stdout.once("data", resolve));
      symlinkSync(`/proc/${reader.pid}`, host.path(`proc/${reader.pid}`));
      expect(await purge()).toMatchObject({ outcome: "failed", message: expect.stringContaining(`(${reader.pid})`) });
    } finally {
      reader.kill("SIGKILL");
    }
    host.write("sys/devices/pci0/nvme/nvme0/nvme0n1/dev", "259:0\n");
    expect(await purge()).toMatchObject({ outcome: "failed", evidence: { reason: "in_use" } });
    expect([host.commands(), host.hasSecret()]).toEqual([[], true]);
  });

  it("sends nothing if a process has a character device of the disk open", async () => {
    host.write("sys/class/nvme-generic/ng0n1/dev", "1:5\n");
    const reader = spawn("sh", ["-c", "exec 3</dev/zero; echo open; exec sleep 600"], {
      stdio: ["ignore", "pipe", "ignore"],
    });
    try {
      await new Promise((resolve) => reader.stdout.once("data", resolve));
      symlinkSync(`/proc/${reader.pid}`, host.path(`proc/${reader.pid}`));
      expect(await purge()).toMatchObject({ outcome: "failed", message: expect.stringContaining(`(${reader.pid})`) });
    } finally {
      reader.kill("SIGKILL");
    }
    expect([host.commands(), host.hasSecret()]).toEqual([[], true]);
  });

  it("waits for the sanitize that a killed worker of the same task started, and never sends it twice", async () => {
    await purgeAndStop();
    expect(host.hasSecret()).toBe(true);
    host.drive({ looks: 2 });
    expect(reasonOf(await purge())).toBe("ok undefined");
    expect([host.commands().length, host.hasSecret()]).toEqual([1, false]);
  });

  it("waits for a running sanitize of an earlier task, and erases again if that one has ended", async () => {
    await purgeAndStop();
    const next = newTaskId();
    host.drive({ looks: 3 });
    const adopted = await purge({ task: next });
    expect([reasonOf(adopted), adopted.evidence["adopted_task"]]).toEqual(["ok undefined", taskId]);
    expect(adopted.evidence).not.toHaveProperty("status_before");
    // A second worker process of the task sends no command, because the first worker process had begun the purge.
    expect(await purge({ task: next })).toEqual(adopted);
    expect(host.commands()).toHaveLength(1);
    host.fill("TENANT-SECRET");
    expect(reasonOf(await purge({ task: newTaskId() }))).toBe("ok undefined");
    expect([host.commands().length, host.hasSecret()]).toEqual([2, false]);
  });

  it("does not believe an older sanitize if the agent was killed just before the command", async () => {
    await purgeAndStop();
    host.drive({ status: 1, action: 2 });
    expect(reasonOf(await purge())).toBe("failed sample_differs");
    expect(host.commands()).toHaveLength(1);
  });

  it("never says that a format whose worker was lost has ended well", async () => {
    host.drive({ sanicap: 0 });
    await purge();
    host.write(journalFile(), JSON.stringify({ ...journal(), state: "started", end: null }));
    expect(reasonOf(await purge())).toBe("failed end_unknown");
    expect(host.commands()).toHaveLength(1);
  });

  it("sends no second format while the end of the first one is unknown, until the host was restarted", async () => {
    host.drive({ sanicap: 0, accepts: "lost" });
    expect(await purge()).toMatchObject({ evidence: { reason: "end_unknown", command_sent: true, serial: "S-1" } });
    expect(journal()).toMatchObject({ state: "started", end: null });
    host.drive({ accepts: "accepted" });
    for (const task of [taskId, newTaskId()]) expect(reasonOf(await purge({ task }))).toBe("failed end_unknown");
    expect(host.commands()).toHaveLength(1);
    host.write(journalFile(), JSON.stringify({ ...journal(), boot_id: "an earlier boot" }));
    expect(reasonOf(await purge({ task: newTaskId() }))).toBe("ok undefined");
    expect(host.commands()).toHaveLength(2);
  });

  it.each<DriveState["accepts"]>(["lost", "late"])(
    "waits for a sanitize whose tool ended badly (%s)",
    async (accepts) => {
      host.drive({ accepts, looks: 2 });
      expect([reasonOf(await purge()), host.commands().length, host.hasSecret()]).toEqual(["ok undefined", 1, false]);
    },
  );

  it.each<[string, Partial<DriveState>, PurgeTiming]>([
    ["log_unreadable", { accepts: "mute" }, QUICK],
    ["no_progress", { looks: 1_000 }, { ...QUICK, patienceOf: () => 0 }],
    ["deadline_passed", { looks: 1_000 }, { ...QUICK, waitWithin: 0 }],
  ])(
    "keeps a started sanitize in the journal after %s, and a later task waits for it",
    async (reason, state, timing) => {
      host.drive(state);
      expect(await purge({ timing })).toMatchObject({ outcome: "failed", evidence: { reason, media_kind: "disk" } });
      expect(journal()).toMatchObject({ state: "started", end: null });
      host.drive({ accepts: "accepted", looks: 3 });
      const adopted = await purge({ task: newTaskId() });
      expect([reasonOf(adopted), adopted.evidence["adopted_task"]]).toEqual(["ok undefined", taskId]);
      expect(host.commands()).toHaveLength(1);
    },
  );

  it.each([
    ["not JSON", () => "{"],
    ["of an unknown form", () => JSON.stringify({ ...journal(), more: 1 })],
    ["of another disk", () => JSON.stringify({ ...journal(), serial: "S-2" })],
  ])("sends nothing if the journal is %s", async (_what, text) => {
    await purge();
    host.write(journalFile(), text());
    for (const task of [taskId, newTaskId()])
      expect(await purge({ task })).toMatchObject({
        outcome: "failed",
        evidence: { reason: "journal_unreadable", media_kind: "disk", serial: "S-1" },
      });
    expect(host.commands()).toHaveLength(1);
  });

  it.each<[string, string, string]>([
    ["other_disk", "id-ctrl-2", "printf S-3 | dd of=identify bs=1 seek=4 conv=notrunc status=none"],
    ["other_disk", "id-ctrl-2", "printf OTHER | dd of=identify bs=1 seek=24 conv=notrunc status=none"],
    ["mounted", "id-ctrl-1", `echo "22 1 $(cat number) / /data rw - ext4 /dev/nvme0n1 rw" >../proc/self/mountinfo`],
    ["in_use", "id-ctrl-1", "mkdir -p ../sys/devices/pci0/nvme/nvme0/nvme0n1/holders/md127"],
    ["in_use", "id-ctrl-1", "echo 8 >../sys/devices/pci0/nvme/nvme0/nvme0n1/size"],
  ])(
    "changes nothing if the disk is another one or in use before the markers (%s, %s)",
    async (reason, call, script) => {
      const before = host.content();
      host.write("state/number", host.number);
      host.at(call, script);
      expect(reasonOf(await purge())).toBe(`failed ${reason}`);
      expect([host.commands(), host.content().equals(before)]).toEqual([[], true]);
    },
  );

  it.each<[string, string, string]>([
    ["other_disk", "id-ctrl-3", "printf S-3 | dd of=identify bs=1 seek=4 conv=notrunc status=none"],
    ["sanitize_running", "id-ctrl-3", "echo 2 >status; echo 2 >action; echo 1000 >looks"],
    ["mounted", "version-2", `echo "22 1 $(cat number) / /data rw - ext4 /dev/nvme0n1 rw" >../proc/self/mountinfo`],
    ["in_use", "version-2", "mkdir -p ../sys/devices/pci0/nvme/nvme0/nvme0n1/holders/md127"],
  ])("sends nothing after the markers, and tells of them (%s, %s)", async (reason, call, script) => {
    host.write("state/number", host.number);
    host.at(call, script);
    expect(await purge()).toMatchObject({
      outcome: "failed",
      evidence: { reason, media_kind: "disk", serial: "S-1", markers_written: true, command_sent: false },
    });
    expect([host.commands(), journal().state]).toEqual([[], "marking"]);
  });

  it("has written the journal and holds the claim when the disk gets the command", async () => {
    host.at(
      "sanitize-1",
      `cp ../${FOLDER}/*.json journal-then
       ${process.execPath} -e 'require("fs").openSync("${host.loop}", 2 | 128)' 2>claim-then || true`,
    );
    expect(reasonOf(await purge())).toBe("ok undefined");
    expect(JSON.parse(host.read("state/journal-then"))).toMatchObject({ state: "started", task_id: taskId });
    expect(host.read("state/claim-then")).toContain("EBUSY");
  });

  it("is unsupported without nvme-cli", async () => {
    await host.system.remove("/usr/bin/nvme");
    expect(reasonOf(await purge())).toBe("unsupported tool_missing");
  });

  it("refuses a disk below a volume, whatever the volume is", async () => {
    mkdirSync(host.path("sys/devices/pci0/nvme/nvme0/nvme0n1/holders/md127"), { recursive: true });
    expect([reasonOf(await purge()), host.commands()]).toEqual(["failed in_use", []]);
  });
});

describe.skipIf(!mayLoop)("the purge of a SATA disk (SKIPPED without loop devices)", () => {
  beforeEach(() => {
    host = new DiskHost("ata");
  });

  it.each<[string, Partial<DriveState>, string, string[]]>([
    ["block erase", { looks: 2 }, "ok undefined", ["--sanitize-block-erase"]],
    ["crypto scramble", { word59: 0x3000, erases: "random" }, "ok undefined", ["--sanitize-crypto-scramble"]],
    [
      "overwrite",
      { word59: 0x5000 },
      "ok undefined",
      ["--sanitize-overwrite-passes 1 --sanitize-overwrite hex:00000000"],
    ],
    ["a sanitize that fails", { fails: true, erases: "nothing" }, "failed sanitize_failed", ["--sanitize-block-erase"]],
    ["a disk that does nothing", { erases: "nothing" }, "failed sample_differs", ["--sanitize-block-erase"]],
    ["a disk without the feature sets", { word59: 0, word128: 0 }, "unsupported no_purge_command", []],
    ["a disk whose security is frozen", { word59: 0, word128: 0x29 }, "failed security_frozen", []],
    ["a disk with another password", { word59: 0, word128: 0x23 }, "failed disk_locked", []],
  ])("%s", async (_what, state, end, commands) => {
    host.drive(state);
    expect(reasonOf(await purge())).toBe(end);
    expect(host.commands()).toEqual(commands.map((one) => `hdparm --yes-i-know-what-i-am-doing ${one} /dev/sda`));
    expect(host.hasSecret()).toBe(!end.startsWith("ok"));
  });

  it("waits for an overwrite as long as the disk says, although the disk tells no progress", async () => {
    // The disk tells 600 units of two minutes.
    host.drive({ word59: 0x5000, word89: 0x8000 | 600 });
    const seen: number[] = [];
    const timing: PurgeTiming = { ...QUICK, patienceOf: (...of) => seen.push(QUICK.patienceOf(...of)) };
    expect(reasonOf(await purge({ timing }))).toBe("ok undefined");
    expect(new Set(seen)).toEqual(new Set([3 * 20 * 3_600]));
  });

  const SECURITY = "hdparm --user-master u --security-";
  const security = () =>
    host.calls().flatMap((call) => (call.startsWith(SECURITY) ? call.slice(SECURITY.length).split(" ")[0] : []));

  it.each<[string, Partial<DriveState>, string, string]>([
    ["enhanced erase", { erases: "random" }, "ok undefined", "erase-enhanced"],
    ["erase", { word128: 0x01 }, "ok undefined", "erase"],
    ["an erase that does nothing", { erases: "nothing" }, "failed sample_differs", "erase-enhanced"],
  ])("without sanitize: security %s", async (_what, state, end, command) => {
    host.drive({ word59: 0, ...state });
    const step = await purge();
    expect([reasonOf(step), security(), host.read("state/password")]).toEqual([end, ["set-pass", command], "0\n"]);
    expect(step.evidence["method"]).toBe(end.startsWith("ok") ? "clear" : undefined);
  });

  it("removes its password after an erase whose end is unknown, and the next task erases again", async () => {
    host.drive({ word59: 0, accepts: "lost", erases: "random" });
    expect(await purge()).toMatchObject({ outcome: "failed", evidence: { reason: "end_unknown", command_sent: true } });
    expect([security().at(-1), host.read("state/password")]).toEqual(["disable", "0\n"]);
    host.drive({ accepts: "accepted" });
    expect(reasonOf(await purge({ task: newTaskId() }))).toBe("ok undefined");
  });

  it.each([
    ["the same task", "2"],
    ["the next task, after a power cut", "6"],
  ])("removes the password that a killed worker left, and erases: %s", async (next, password) => {
    host.drive({ word59: 0, erases: "random" });
    await purge();
    host.fill("TENANT-SECRET");
    host.write(journalFile(), JSON.stringify({ ...journal(), state: "started", end: null }));
    host.write("state/password", `${password}\n`);
    expect(reasonOf(await purge(password === "2" ? {} : { task: newTaskId() }))).toBe("ok undefined");
    expect([next, host.read("state/password"), host.hasSecret()]).toEqual([next, "0\n", false]);
  });

  it("leaves a password that no journal explains", async () => {
    host.drive({ word59: 0 });
    host.write("state/password", "6\n");
    expect([reasonOf(await purge()), security(), host.read("state/password")]).toEqual([
      "failed disk_locked",
      [],
      "6\n",
    ]);
  });
});
