import { describe, expect, it } from "vitest";
import { CleaningStep } from "../../shared/tasks/cleaning-step.ts";
import { gpuDevices } from "./gpu-devices.ts";
import { needOf } from "./gpu-need.ts";
import { runningServices } from "./gpu-services.ts";
import { aGpu } from "./gpu-state.fixture.ts";
import { pciAddress } from "./gpu-state.ts";
import { gpuStep, named } from "./gpu-steps.ts";
import { isOffTheBus, journalStart, kernelFaults } from "./kernel-faults.ts";
import { otherUsers, parseModules, unloadOrder } from "./kernel-modules.ts";
import { switchesInParams, switchesInRegistry, turnsScrubOff } from "./nvidia-switches.ts";
import { resetGroups } from "./reset-groups.ts";

describe("a PCI address", () => {
  it.each([
    ["00000000:3B:00.0", "0000:3b:00.0"],
    ["0000:3b:00.0", "0000:3b:00.0"],
    ["3b:00.0", "0000:3b:00.0"],
    ["00010000:01:00.0", "10000:01:00.0"],
    ["GPU is lost", null],
    ["", null],
  ])("%s is %s", (text, address) => expect(pciAddress(text)).toBe(address));
});

describe("the switches of NVIDIA's driver", () => {
  const params = (all: string, device: string): string =>
    `ResmanDebugLevel: 4294967295\nRmLogonRC: 1\nRegistryDwords: "${all}"\nRegistryDwordsPerDevice: "${device}"\nTemporaryFilePath: ""\n`;

  it("are empty on a host without switches", () => {
    expect(switchesInParams(params("", ""))).toEqual([]);
    expect(switchesInRegistry("0000:3b:00.0", 'Binary: ""\n')).toEqual([]);
  });

  it("are read with their scope", () => {
    expect(switchesInParams(params("RMDisableScrubOnFree=1;RmX=2", "pci=0000:3b:00.0;RmY=3"))).toEqual([
      { scope: "all", name: "RMDisableScrubOnFree", value: "1" },
      { scope: "all", name: "RmX", value: "2" },
      { scope: "0000:3b:00.0", name: "RmY", value: "3" },
    ]);
    expect(switchesInRegistry("0000:3b:00.0", "RMDisableScrubOnFree: 0x1\n")).toEqual([
      { scope: "0000:3b:00.0", name: "RMDisableScrubOnFree", value: "0x1" },
    ]);
  });

  it("are unknown if the file lacks a line", () => {
    for (const text of ["", 'RegistryDwords: ""\n', params("", "").replace("RegistryDwordsPerDevice", "Other")])
      expect(switchesInParams(text)).toBeNull();
  });

  it.each([
    ["1", true],
    ["0x1", true],
    ["yes", true],
    ["", true],
    ["0", false],
    ["0x0", false],
  ])("the value %s turns the scrub off: %s", (value, off) => {
    expect(turnsScrubOff({ scope: "all", name: "rmdisablescrubonfree", value })).toBe(off);
    expect(turnsScrubOff({ scope: "all", name: "RmOther", value })).toBe(false);
  });
});

describe("the device numbers of GPUs", () => {
  const DEVICES = `Character devices:
  1 mem
195 nvidia
195 nvidiactl
226 drm
235 nvidia-caps
236 nvidia-nvswitch
237 nvidia-nvlink
240 kfd
511 nvidia-uvm

Block devices:
  7 nvidia-loop
259 blkext
`;
  it.each([
    ["nvidia", DEVICES, [195, 226, 235, 236, 237, 511]],
    ["nvidia", "Character devices:\n  1 mem\n", [195, 226]],
    ["amd", DEVICES, [226, 240]],
  ] as const)("%s", (vendor, text, majors) => {
    expect(gpuDevices(vendor, text).map(({ major }) => major)).toEqual(majors);
  });
});

describe("the services that hold GPUs", () => {
  const line = (unit: string, active = "active"): string => `${unit} loaded ${active} running Something with words`;

  it("are stopped in the order of their use, and only those that run", () => {
    const listed = [
      line("nvidia-fabricmanager.service"),
      line("nvidia-persistenced.service"),
      line("kubelet.service"),
      line("dcgm-exporter.service", "failed"),
      line("nvidia-dcgm.service", "activating"),
      line("nvsm-core.service"),
      line("ssh.service"),
      line("my-nvidia-persistenced.service"),
      line("gdm.service"),
      line("nvlsm.service"),
      line("nvidia-imex.service", "inactive"),
    ].join("\n");
    expect(runningServices("nvidia", listed)).toEqual([
      { unit: "kubelet.service", fabric: false },
      { unit: "nvidia-dcgm.service", fabric: false },
      { unit: "nvsm-core.service", fabric: false },
      { unit: "gdm.service", fabric: false },
      { unit: "nvidia-persistenced.service", fabric: false },
      { unit: "nvidia-fabricmanager.service", fabric: true },
      { unit: "nvlsm.service", fabric: true },
    ]);
    expect(runningServices("amd", listed).map(({ unit }) => unit)).toEqual(["kubelet.service", "gdm.service"]);
  });
});

describe("kernel modules", () => {
  const MODULES = `nvidia_uvm 4956160 0 - Live 0x0000000000000000 (OE)
nvidia_drm 122880 2 - Live 0x0000000000000000 (OE)
nvidia_modeset 1814528 1 nvidia_drm, Live 0x0000000000000000 (OE)
nvidia 14438400 41 nvidia_uvm,nvidia_modeset,gdrdrv, Live 0x0000000000000000 (OE)
gdrdrv 36864 0 - Live 0x0000000000000000 (OE)
ext4 1 2 - Live 0x0
`;
  it("are unloaded before the modules that they use", () => {
    expect(unloadOrder(parseModules(MODULES), "nvidia")).toEqual([
      "nvidia_uvm",
      "nvidia_drm",
      "nvidia_modeset",
      "gdrdrv",
      "nvidia",
    ]);
    expect(unloadOrder(parseModules(MODULES), "amdgpu")).toEqual([]);
  });

  it("that use each other end the order", () => {
    const circle = parseModules("a 1 1 b, Live 0x0\nb 1 1 a, Live 0x0\n");
    expect(unloadOrder(circle, "a")).toEqual(["b", "a"]);
  });

  it("have users that are no modules", () => {
    expect(otherUsers(parseModules(MODULES), "nvidia")).toBe(38);
    expect(otherUsers(parseModules(MODULES), "nvidia_drm")).toBe(2);
    expect(otherUsers(parseModules(MODULES), "absent")).toBe(0);
  });
});

describe("the kernel's log", () => {
  const line = (MESSAGE: unknown): string => JSON.stringify({ MESSAGE });
  const XID = "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.";

  it("tells Xids with their GPU", () => {
    const [fault] = kernelFaults("nvidia", [line("usb 1-1: new device"), "", line(XID)].join("\n"), 0);
    expect(fault).toEqual({ pci: "0000:3b:00.0", xid: 79, text: XID });
    expect(fault !== undefined && isOffTheBus(fault)).toBe(true);
    const [other] = kernelFaults("nvidia", line(XID.replace("79", "48")), 0);
    expect(other !== undefined && isOffTheBus(other)).toBe(false);
  });

  it("is read also where journald writes a message as bytes, or leaves out a long one", () => {
    expect(kernelFaults("nvidia", line([...Buffer.from(XID)]), 0)).toHaveLength(1);
    expect(kernelFaults("nvidia", line(null), 0)).toEqual([]);
  });

  it("tells AMD's faults", () => {
    const text = "amdgpu 0000:05:00.0: amdgpu: GPU reset(3) failed";
    expect(
      kernelFaults("amd", [line(text), line("amdgpu 0000:05:00.0: amdgpu: GPU reset(3) succeeded!")].join("\n"), 0),
    ).toEqual([{ pci: "0000:05:00.0", xid: null, text }]);
  });

  it("counts from the cleaning's start, also if the wall clock was stepped meanwhile", () => {
    const at = (monotonic: unknown) => JSON.stringify({ MESSAGE: XID, __MONOTONIC_TIMESTAMP: monotonic });
    expect(
      kernelFaults("nvidia", [at("999"), at("1000"), at("1001"), at(null), at("x")].join("\n"), 1000),
    ).toHaveLength(4);
    const start = { wallMs: 1_000_000_000, monotonicUs: 50_000_000 };
    const later = (wallMs: number) => ({ wallMs, monotonicUs: start.monotonicUs + 60_000_000 });
    expect(journalStart(start, later(start.wallMs + 60_000))).toBe(1_000_000);
    expect(journalStart(start, later(start.wallMs + 86_400_000))).toBe(1_000_000);
    expect(journalStart(start, later(start.wallMs - 3_600_000))).toBe(1_000_000 - 3_660);
  });

  it("that cannot be read is not an empty one", () => {
    for (const text of ["{", "{}", '{"MESSAGE":7}', "-- No entries --"])
      expect(() => kernelFaults("nvidia", text, 0)).toThrow();
  });
});

describe("groups of GPUs", () => {
  const groupsOf = (groups: readonly (string | null)[]) =>
    resetGroups(groups.map((group, n) => aGpu({ pci: `0000:0${n}:00.0`, group }))).map(({ name, gpus }) => [
      name,
      gpus.length,
    ]);

  it.each([
    [[], []],
    [
      [null, null],
      [
        ["0000:00:00.0", 1],
        ["0000:01:00.0", 1],
      ],
    ],
    [["nvswitch", "nvswitch", null], [["nvswitch", 3]]],
    [
      ["hive 1", "hive 2", "hive 1", null],
      [
        ["hive 1", 2],
        ["hive 2", 1],
        ["0000:03:00.0", 1],
      ],
    ],
  ])("%o", (groups, expected) => expect(groupsOf(groups)).toEqual(expected));
});

describe("what the host needs", () => {
  const end = { isClean: false, isOnBus: true, isTried: true, recommends: "none" } as const;
  const clean = { ...end, isClean: true };
  it.each([
    [[clean, clean], false, "none"],
    [[clean, end], false, "reboot"],
    [[clean, { ...end, isTried: false }], false, "none"],
    [[clean, { ...end, isTried: false, recommends: "reboot" as const }], false, "reboot"],
    [[clean, { ...end, isOnBus: false }], false, "power_cycle"],
    [[{ ...end, recommends: "power_cycle" as const }], false, "power_cycle"],
    [[end, { ...end, isOnBus: false }], true, "power_cycle"],
    [[clean], true, "reboot"],
    [[], true, "reboot"],
  ] as const)("%o, wedged %s: %s", (gpus, wedged, need) => expect(needOf(gpus, wedged)).toBe(need));
});

describe("a step", () => {
  it("has texts that a step may have", () => {
    const step = gpuStep("gpu_verify", "host", "ok", "m".repeat(900), { long: "e".repeat(900), gone: undefined, n: 1 });
    expect([step.message.length, String(step.evidence["long"]).length, Object.keys(step.evidence)]).toEqual([
      512,
      256,
      ["long", "n"],
    ]);
  });
  it("fits its schema with any number of values and any text", () => {
    const text = `a\u001b\ud800${"x".repeat(2_000)}`;
    const evidence = Object.fromEntries(Array.from({ length: 40 }, (_none, index) => [`k${index}`, text]));
    expect(CleaningStep.safeParse(gpuStep("gpu_verify", text, "failed", text, evidence)).error).toBeUndefined();
  });
  it("says how many names it leaves out", () => {
    expect(named(["a", "b", "c"], 2)).toBe("a, b and 1 more");
    expect(named(["a", "b"], 2)).toBe("a, b");
  });
});
