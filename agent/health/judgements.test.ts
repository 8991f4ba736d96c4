import { describe, expect, it } from "vitest";
import type { GpuState } from "../gpu/gpu-state.ts";
import { DriverWedged, StateUnreadable, ToolMissing } from "../gpu/gpu-tool.ts";
import { judgeClock, parseTimedatectl } from "./clock.ts";
import { judgeRoom, type Room } from "./disk-room.ts";
import { judgeDisks, parseNvmeLog, parseSmartctl, type SeenDisk } from "./disks.ts";
import { isBarring, judgeGpus, judgeKernelFaults, judgeRas, parseRasCounts } from "./gpus.ts";
import type { Findings, HealthType } from "./judged.ts";
import { judgeKernelLog, parseKernelLog } from "./kernel-log.ts";
import { judgeMemory, type MemoryController } from "./memory.ts";
import { bestSpeeds, judgeNics, type Nic } from "./nics.ts";
import { judgeNvidiaWear, parseNvidiaWear } from "./nvidia-wear.ts";
import * as recorded from "./recorded.fixture.ts";
import { faultsIn, standingFaults } from "./standing-faults.ts";

const say = (findings: Findings): Partial<Record<HealthType, string>> =>
  Object.fromEntries(Object.entries(findings).map(([type, { status, reason }]) => [type, `${status} ${reason}`]));

const gpu = (pci: string, more: Partial<GpuState> = {}): GpuState => ({
  ...{ pci, uuid: "GPU-1", serial: null, vbios: null, driver: null, memoryTotalMib: 1, memoryUsedMib: 1 },
  ...{ processes: [], settings: {}, faults: [], recommends: "none", group: null, fabric: "absent" },
  ...more,
});
const EIGHT = Array.from({ length: 8 }, (_, number) => `0000:0${number}:00.0`);
const gpus = (report: readonly GpuState[]) => say(judgeGpus(EIGHT, { report: { gpus: report } }));

describe("the GPUs", () => {
  it("are those of the PCI bus, all shown by the driver and without a fault", () => {
    expect(gpus(EIGHT.map((pci) => gpu(pci)))).toEqual({
      "hardware.gpus": "True AllShown",
      "health.gpu": "True Healthy",
    });
    expect(gpus(EIGHT.slice(1).map((pci) => gpu(pci)))).toMatchObject({ "hardware.gpus": "False GpuLost" });
    expect(say(judgeGpus([], { report: { gpus: [] } }))).toMatchObject({ "hardware.gpus": "True NoGpus" });
  });

  it.each([
    ["a reset", { faults: ["gpu_recovery_action Reset"], recommends: "reset" }, "False GpuNeedsReset"],
    ["a reboot", { faults: ["gpu_recovery_action Reboot"], recommends: "reboot" }, "False GpuNeedsReboot"],
    ["errors", { faults: ["volatile dram_uncorrectable is 4"] }, "False GpuFaulty"],
    ["no NVLink", { fabric: "failed" }, "False GpuFaulty"],
    ["NVLink that starts", { fabric: "starting" }, "False FabricStarting"],
  ] as const)("are not healthy with %s", (_, more, said) => {
    const [first = "", ...others] = EIGHT;
    expect(gpus([gpu(first, more), ...others.map((pci) => gpu(pci))])["health.gpu"]).toBe(said);
  });

  it("with several faults need the largest of the recommended actions, in whichever order the tool lists them", () => {
    const REASONS = {
      ...{ none: "GpuFaulty", unknown: "GpuFaulty", reset: "GpuNeedsReset" },
      ...{ reboot: "GpuNeedsReboot", power_cycle: "GpuNeedsReboot" },
    };
    const actions = Object.keys(REASONS) as (keyof typeof REASONS)[];
    const size = ["GpuFaulty", "GpuNeedsReset", "GpuNeedsReboot"];
    for (const [one, other] of actions.flatMap((a) => actions.map((b) => [a, b] as const))) {
      const [first = "", second = "", ...others] = EIGHT;
      const faulty = (pci: string, recommends: keyof typeof REASONS) => gpu(pci, { faults: ["f"], recommends });
      const said = gpus([faulty(first, one), faulty(second, other), ...others.map((pci) => gpu(pci))])["health.gpu"];
      const larger = size[Math.max(size.indexOf(REASONS[one]), size.indexOf(REASONS[other]))];
      expect(said, `${one} and ${other}`).toBe(`False ${larger}`);
    }
  });

  it("are never healthy if nobody can ask the driver; a missing tool is only information", () => {
    const hung = { kind: "hung", pid: 1, state: "D", wchan: "nv", isAlive: true } as const;
    const of = (error: unknown) => say(judgeGpus(EIGHT, { error }))["health.gpu"];
    expect(of(new ToolMissing("x"))).toBe("Unknown NotObserved");
    expect(of(new StateUnreadable("x"))).toBe("Unknown Unreadable");
    expect(of(new DriverWedged("nvidia-smi", hung))).toBe("False DriverWedged");
    expect(() => of(new Error("a fault of the agent"))).toThrow("a fault of the agent");
  });

  it("have worn by what nvidia-smi counts over their life, and by their temperature", () => {
    const [h100] = parseNvidiaWear(recorded.NVIDIA_H100);
    if (h100 === undefined) throw new Error("no GPU was read");
    expect(h100).toEqual({
      ...{ pci: "00000000:18:00.0", corrected: 43, uncorrected: 1, remappedRows: 1 },
      ...{ slowedBy: [], celsius: 67, slowdownCelsius: 87 },
    });
    const of = (more: Partial<typeof h100>, wasWorn = false) =>
      say(judgeNvidiaWear([{ ...h100, ...more }], wasWorn))["health.gpu_wear"];
    expect(of({})).toBe("True Healthy");
    expect([of({ celsius: 86 }), of({ celsius: 83 }), of({ celsius: 83 }, true), of({ celsius: 82 }, true)]).toEqual([
      ...["False GpuWorn", "True Healthy", "False GpuWorn", "True Healthy"],
    ]);
    expect([of({ remappedRows: 7 }), of({ remappedRows: 8 })]).toEqual(["True Healthy", "False GpuWorn"]);
    const hot = recorded.NVIDIA_H100.replace("hw_thermal_slowdown>Not Active", "hw_thermal_slowdown>Active");
    expect(say(judgeNvidiaWear(parseNvidiaWear(hot), false))["health.gpu_wear"]).toBe("False GpuWorn");
    const older = hot.replaceAll("clocks_event_reason", "clocks_throttle_reason");
    expect(parseNvidiaWear(older)[0]?.slowedBy).toEqual(["hw_thermal_slowdown"]);
  });

  it("of AMD have the counters of RAS", () => {
    const counts = parseRasCounts(recorded.RAS_COUNTS);
    expect(counts).toHaveLength(3);
    expect(say(judgeRas(counts))).toEqual({
      "health.gpu": "False UncorrectedErrors",
      "health.gpu_wear": "False CorrectedErrors",
    });
    expect(say(judgeRas(counts.slice(0, 1)))).toEqual({ "health.gpu_wear": "True Healthy" });
    expect(say(judgeRas([]))).toEqual({ "health.gpu_wear": "Unknown NotObserved" });
  });
});

describe("the kernel's log", () => {
  const log = parseKernelLog(recorded.JOURNAL);

  it("is read up to its last entry, and only from there on the next time", () => {
    expect(log.lines).toHaveLength(5);
    expect(log.lines[0]?.atUs).toBe(1_000_000);
    expect(parseKernelLog('{"__CURSOR":"c","MESSAGE":"x"}').lines).toEqual([{ text: "x", atUs: null }]);
    expect(log.cursor).toContain("i=5");
    expect(parseKernelLog("")).toEqual({ lines: [], cursor: null });
    expect(() => parseKernelLog('{"MESSAGE":"a line without a cursor"}')).toThrow();
    expect(() => parseKernelLog("-- No entries --")).toThrow();
  });

  it("tells of the hardware, and not of a tenant's programs", () => {
    expect(say(judgeKernelLog(log.lines))).toEqual({ "health.kernel": "False MachineCheck" });
    expect(say(judgeKernelLog(log.lines.slice(4)))).toEqual({ "health.kernel": "True Healthy" });
    const faults = faultsIn(log.lines);
    expect(faults.map(({ xid }) => xid)).toEqual([79, 31, 63]);
    const judged = judgeKernelFaults(faults.filter(isBarring), faults);
    expect(say(judged)).toEqual({ "health.gpu": "False KernelFault", "health.gpu_wear": "False MemoryRepaired" });
    expect(judged["health.gpu"]?.message).toBe("0000:18:00.0: Xid 79");
    expect(
      say(judgeKernelFaults(standingFaults([], log.lines.slice(1, 2), []), faults.slice(1, 2)))["health.gpu"],
    ).toBe("True Healthy");
  });

  it.each([
    ["blk_update_request: I/O error, dev nvme1n1, sector 99 op 0x0", "DiskError"],
    ["nvme nvme3: controller is down; will reset: CSTS=0xffffffff", "DiskError"],
    [
      "EXT4-fs error (device sda2): ext4_find_entry:1455: inode #2: comm ls: reading directory lblock 0",
      "FileSystemError",
    ],
    ["watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [kworker/3:1:88]", "Lockup"],
    ["INFO: task nvidia-smi:4411 blocked for more than 120 seconds.", "Lockup"],
    ["pcieport 0000:00:01.1: AER: Uncorrected (Fatal) error received: 0000:18:00.0", "PcieError"],
    ["CPU24: Package temperature above threshold, cpu clock is throttled (total events = 9)", "TooHot"],
  ])("%s", (line, kind) =>
    expect(say(judgeKernelLog([{ text: line, atUs: 1 }]))).toEqual({ "health.kernel": `False ${kind}` }),
  );
});

describe("the disks", () => {
  const nvme = parseNvmeLog(recorded.NVME_LOG);
  const of = (...disks: readonly SeenDisk[]) => say(judgeDisks(disks));

  it("say the same by each tool", () => {
    expect(nvme).toMatchObject({
      criticalWarning: 0,
      usedPercent: 3,
      sparePercent: 100,
      spareThresholdPercent: 10,
      mediaErrors: 0,
    });
    expect(parseSmartctl(recorded.SMARTCTL_NVME)).toEqual({ ...nvme, passed: true });
    expect(parseSmartctl(recorded.SMARTCTL_ATA)).toMatchObject({ passed: true, badSectors: 0, criticalWarning: null });
    expect(parseNvmeLog(recorded.NVME_LOG_VERBOSE)).toMatchObject({
      criticalWarning: 4,
      usedPercent: 97,
      mediaErrors: 18,
    });
    expect(parseSmartctl('{"smartctl":{"exit_status":2}}')).toBeNull();
    expect(() => parseSmartctl("smartctl 7.4")).toThrow();
    expect(() => parseNvmeLog("{}")).toThrow();
  });

  it("are failing by their own word, and worn by what they count", () => {
    const worn = parseNvmeLog(recorded.NVME_LOG_VERBOSE);
    expect(of({ name: "nvme0n1", health: nvme })).toEqual({
      "health.disks": "True Healthy",
      "health.disk_wear": "True Healthy",
    });
    expect(of({ name: "nvme0n1", health: worn })).toEqual({
      "health.disks": "False DiskFailing",
      "health.disk_wear": "False DiskWorn",
    });
    const failing = parseSmartctl(recorded.SMARTCTL_ATA.replace('"passed":true', '"passed":false'));
    expect(of({ name: "sda", health: failing as NonNullable<typeof failing> })["health.disks"]).toBe(
      "False DiskFailing",
    );
    const hot = of({ name: "nvme0n1", health: { ...nvme, criticalWarning: 2 } });
    expect(hot).toEqual({ "health.disks": "True Healthy", "health.disk_wear": "False DiskWorn" });
    const pending = { ...nvme, criticalWarning: null, badSectors: 8 };
    expect(of({ name: "sda", health: pending })["health.disk_wear"]).toBe("False DiskWorn");
  });

  it("are unknown without a tool, unless another disk has a fault", () => {
    const unread: SeenDisk = { name: "sda", health: null, isSilent: true, why: "The tool smartctl is not installed." };
    expect(of(unread, { name: "nvme0n1", health: nvme })["health.disks"]).toBe("Unknown NotObserved");
    expect(of(unread, { name: "nvme0n1", health: { ...nvme, criticalWarning: 1 } })["health.disks"]).toBe(
      "False DiskFailing",
    );
    const broken: SeenDisk = { name: "sdb", health: null, isSilent: false, why: "it did not answer in time" };
    expect(of(unread, broken)["health.disks"]).toBe("Unknown Unreadable");
    expect(of()["health.disks"]).toBe("Unknown NotObserved");
  });
});

describe("the rest of the host", () => {
  it("has memory without uncorrected errors and with few corrected ones", () => {
    const mc = (uncorrected: number, corrected: number): MemoryController[] => [
      {
        name: "mc0",
        uncorrected,
        corrected,
        modules: uncorrected > 0 ? ["CPU1_DIMM_A1 (1 uncorrected, 0 corrected)"] : [],
      },
    ];
    const hour = 3_600_000;
    const of = (uncorrected: number, corrected: number, before: number | null) =>
      say(
        judgeMemory(mc(uncorrected, corrected), before === null ? null : { atMs: 0, corrected: before }, {
          atMs: hour,
          corrected,
        }),
      );
    expect(of(0, 900, null)).toEqual({ "health.memory": "True Healthy", "health.memory_wear": "True Healthy" });
    expect(of(1, 0, 0)["health.memory"]).toBe("False UncorrectedErrors");
    expect([of(0, 200, 100), of(0, 201, 100), of(0, 3, 100)].map((one) => one["health.memory_wear"])).toEqual([
      ...["True Healthy", "False ManyCorrectedErrors", "True Healthy"],
    ]);
    expect(say(judgeMemory([], null, { atMs: 0, corrected: 0 }))["health.memory"]).toBe("Unknown NotObserved");
  });

  it("has the links that it had, at their speed", () => {
    const nic: Nic = { name: "eth0", isUp: true, carrier: true, speedMbps: 400_000 };
    const of = (now: Partial<Nic>) => {
      const nics = [{ ...nic, ...now }];
      return say(judgeNics(nics, bestSpeeds(bestSpeeds({}, [nic]), nics)))["hardware.nics"];
    };
    expect(of({})).toBe("True Healthy");
    expect(of({ speedMbps: 200_000 })).toBe("False LinkLost");
    expect(of({ carrier: false, speedMbps: null })).toBe("False LinkLost");
    expect(of({ isUp: false, carrier: false })).toBe("True Healthy");
    expect(say(judgeNics([], {}))["hardware.nics"]).toBe("Unknown NotObserved");
  });

  it("has room on its disks, and inodes", () => {
    const room: Room = { path: "/", bytes: 1000, freeBytes: 500, files: 1000, freeFiles: 500 };
    const of = (more: Partial<Room>, wasFull = false) =>
      say(judgeRoom([{ ...room, ...more }], wasFull))["health.disk_room"];
    expect([
      of({}),
      of({ freeBytes: 49 }),
      of({ freeFiles: 49 }),
      of({ freeBytes: 60 }),
      of({ freeBytes: 60 }, true),
    ]).toEqual([...["True Healthy", "False DiskFull", "False DiskFull", "True Healthy", "False DiskFull"]]);
    expect(of({ files: 0, freeFiles: 0 })).toBe("True Healthy");
    expect(say(judgeRoom([], false))["health.disk_room"]).toBe("Unknown NotObserved");
  });

  it("has a clock that a time service keeps and that agrees with the hub's", () => {
    expect(parseTimedatectl("NTPSynchronized=yes\n")).toEqual({ synchronized: true });
    expect(parseTimedatectl("Failed to connect to bus")).toEqual({ synchronized: null });
    const of = (...args: Parameters<typeof judgeClock>) => say(judgeClock(...args))["health.clock"];
    expect([of(true, 0, false), of(false, 0, false), of(null, 0, false), of(true, -6_000, false)]).toEqual([
      ...["True Healthy", "False NotSynchronized", "Unknown NotObserved", "False ClockWrong"],
    ]);
    expect([of(true, 3_000, false), of(true, 3_000, true), of(null, 6_000, false)]).toEqual([
      ...["True Healthy", "False ClockWrong", "False ClockWrong"],
    ]);
  });
});
