import { describe, expect, it } from "vitest";
import { type Driver, nvidiaXml, type XmlGpu } from "../../test/fakes/gpu/nvidia-xml.ts";
import type { GpuState } from "./gpu-state.ts";
import { parseNvidiaReport } from "./nvidia-report.ts";

const GPU: XmlGpu = { pci: "0000:3b:00.0", uuid: "GPU-c5533cd4-5a60-059e-348d-b6d7466932e4" };
const read = (gpu: Partial<XmlGpu> = {}, driver: Driver = "575.51.02"): GpuState => {
  const [found] = parseNvidiaReport(nvidiaXml([{ ...GPU, ...gpu }], driver)).gpus;
  if (found === undefined) throw new Error("no GPU was read");
  return found;
};
const DRIVERS: readonly Driver[] = ["525.147.05", "555.42.06", "575.51.02", "590.44.01"];

function errorOf(act: () => unknown): string {
  try {
    act();
  } catch (error) {
    return String(error);
  }
  return "no error";
}

describe("the report of nvidia-smi", () => {
  it.each(DRIVERS)("driver %s: a healthy GPU has no faults", (driver) => {
    expect(read({}, driver)).toMatchObject({
      pci: "0000:3b:00.0",
      uuid: GPU.uuid,
      serial: "1654523003308",
      vbios: "96.00.74.00.01",
      driver,
      memoryTotalMib: 81_559,
      memoryUsedMib: 4,
      processes: [],
      faults: [],
      recommends: "none",
      group: null,
      fabric: "absent",
      settings: { power_limit: "default", compute_mode: "Default" },
    });
  });

  it("driver 470, which tells no recommendation, is never healthy", () => {
    expect(read({}, "470.256.02")).toMatchObject({ recommends: "unknown", faults: [expect.stringContaining("null")] });
  });

  it.each([
    ["None", "none"],
    ["Reset", "reset"],
    ["Drain P2P", "reset"],
    ["Drain and Reset", "reset"],
    ["Reboot", "reboot"],
    ["Recover IMEX Domain", "reboot"],
    ["Bus Reset", "reboot"],
    ["System Reboot", "reboot"],
    ["Replace", "unknown"],
    ["N/A", "unknown"],
    ["[N/A]", "unknown"],
    ["ERR!", "unknown"],
    ["GPU requires reset", "unknown"],
    ["Requested functionality has been deprecated", "unknown"],
  ])("the recovery action %s means %s", (recovery, recommends) => {
    const gpu = read({ recovery });
    expect([gpu.recommends, gpu.faults.length]).toEqual([recommends, recommends === "none" ? 0 : 1]);
  });

  it.each([
    ["No", "none"],
    ["Yes", "reset"],
    ["N/A", "unknown"],
    ["ERR!", "unknown"],
  ])("before R565, reset_required %s means %s", (resetRequired, recommends) => {
    expect(read({ resetRequired }, "555.42.06").recommends).toBe(recommends);
  });

  it.each([
    [{ volatileErrors: "1" }, "volatile sram_uncorrectable_secded is 1"],
    [{ volatileErrors: "ERR!" }, "volatile sram_uncorrectable_secded is ERR!"],
    [{ volatileErrors: "N/A" }, "volatile sram_uncorrectable_secded is N/A"],
    [{ remapPending: "Yes" }, "remapped_row_pending is Yes"],
    [{ remapFailure: "Yes" }, "remapped_row_failure is Yes"],
    [{ remapFailure: "N/A" }, "remapped_row_failure is N/A"],
    [{ remapPending: "N/A", remapFailure: "N/A" }, "pending repairs of memory are not known (pending_retirement N/A)"],
    [{ used: "[N/A]" }, "the used memory is not told"],
    [{ uuid: "ERR!" }, "the UUID is not told"],
  ] as const)("%o is a fault", (gpu, fault) => {
    expect(read(gpu).faults).toEqual([fault]);
  });

  it("a GPU whose error correction is off has no counters, and that is no fault", () => {
    expect(read({ ecc: "Disabled", volatileErrors: "N/A" }).faults).toEqual([]);
  });

  it.each([
    [{ state: "N/A", status: "N/A" }, "absent", null],
    [{ state: "Not Started", status: "N/A" }, "starting", "nvswitch"],
    [{ state: "In Progress", status: "N/A" }, "starting", "nvswitch"],
    [{ state: "Completed", status: "Success" }, "ready", "nvswitch"],
    [{ state: "Completed", status: "N/A" }, "failed", "nvswitch"],
    [{ state: "Completed", status: "Unknown Error" }, "failed", "nvswitch"],
  ] as const)("the fabric %o is %s", (fabric, state, group) => {
    expect(read({ fabric })).toMatchObject({ fabric: state, group });
  });

  it("names the processes of a GPU, and an unreadable list is not an empty one", () => {
    expect(read({ processes: [{ pid: 41, name: "python &amp; co" }] }).processes).toEqual([
      { pid: 41, name: "python & co" },
    ]);
    const unreadable = nvidiaXml([GPU]).replace("<processes></processes>", "<processes>ERR!</processes>");
    expect(parseNvidiaReport(unreadable).gpus[0]?.processes).toBeNull();
  });

  it("refuses a report that is cut, that lists another number of GPUs, or that is no report", () => {
    const whole = nvidiaXml([GPU]);
    for (const text of [
      whole.slice(0, -30),
      whole.replace("<attached_gpus>1<", "<attached_gpus>8<"),
      whole.replaceAll("nvidia_smi_log", "other_log"),
      whole.replaceAll("00003B:00", "GPU is lost").replaceAll("0000:3B:00.0", "GPU is lost"),
      nvidiaXml([GPU, GPU]),
      "",
      "No devices were found\n",
      "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
    ])
      expect(() => parseNvidiaReport(text)).toThrow(expect.objectContaining({ name: "UnreadableXml" }));
  });

  it.each([
    ["Root element is missing or invalid (line 1, column 1)", "a wrapper with NGC_API_KEY hunter2\n"],
    ["Attribute value expected (line 1, column 12)", "<x hunter2=a"],
    ["Unclosed start tag for element `[redacted]`", "<hunter2-mN3kQ7_x-Zt0aB4cD5eF6gH7iJ8kL9mN0o"],
  ])("says %s of an unreadable report, and repeats no secret in it", (why, text) => {
    const said = errorOf(() => parseNvidiaReport(text));
    expect(said).toContain(why);
    expect(said).not.toContain("hunter2");
  });
});
