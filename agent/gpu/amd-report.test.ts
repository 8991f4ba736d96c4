import { describe, expect, it } from "vitest";
import { AMD_PCI, type AmdCommand, type AmdGpu, amdOutput, type Release } from "../../test/fakes/gpu/amd-host.ts";
import { AMD_SMI_SAMPLES } from "./amd-report.fixture.ts";
import { type AmdFiles, filesByAddress, parseAmdReport } from "./amd-report.ts";

const FILES: AmdFiles = { mem_info_vram_total: "206141652992", mem_info_vram_used: "299892736" };
const read = (
  gpus: readonly AmdGpu[],
  release: Release = "7.0",
  files: AmdFiles = FILES,
  replaced: Partial<Record<AmdCommand, string>> = {},
) =>
  parseAmdReport(
    {
      static: amdOutput("static", gpus, release),
      metric: amdOutput("metric", gpus, release),
      "bad-pages": amdOutput("bad-pages", gpus, release),
      process: amdOutput("process", gpus, release),
      ...replaced,
    },
    Object.fromEntries(gpus.map(({ pci }) => [pci, files])),
  ).gpus;
const GPU: AmdGpu = { pci: AMD_PCI(0) };

describe("the report of amd-smi", () => {
  it.each<Release>(["6.2", "7.0"])("ROCm %s: a healthy GPU has no faults", (release) => {
    expect(read([GPU], release)).toMatchObject([
      {
        pci: AMD_PCI(0),
        serial: "0x7A9F",
        vbios: "022.040",
        driver: "6.12.12",
        memoryTotalMib: 196_592,
        memoryUsedMib: 286,
        processes: [],
        faults: [],
        recommends: "none",
        group: null,
      },
    ]);
  });

  it.each<[Partial<AmdGpu>, string]>([
    [{ uncorrectable: 1 }, "total_uncorrectable_count is 1"],
    [{ uncorrectable: "N/A" }, "total_uncorrectable_count is N/A"],
    [{ deferred: 2 }, "total_deferred_count is 2"],
    [{ pending: [{ page_address: "0x1" }] }, "pages wait for their retirement"],
    [{ pending: 7 }, "pages wait for their retirement"],
    [{ xgmi: "MULTIPLE_ERRORS" }, 'xgmi_err is "MULTIPLE_ERRORS"'],
  ])("%o is a fault", (differs, fault) => {
    expect(read([{ ...GPU, ...differs }])).toMatchObject([{ faults: [fault], recommends: "unknown" }]);
  });

  it("a GPU without error correction has no counters, and that is no fault", () => {
    expect(read([{ ...GPU, ecc: false, uncorrectable: "N/A" }])).toMatchObject([{ faults: [] }]);
  });

  it("memory that the driver does not tell is a fault", () => {
    expect(read([GPU], "7.0", {})).toMatchObject([{ faults: ["the used memory is not told"], memoryUsedMib: null }]);
  });

  it.each([
    [{ "xgmi_hive_info/xgmi_hive_id": "12345" }, "hive 12345"],
    [{ xgmi_hive_id: "9" }, "hive 9"],
    [{ xgmi_hive_id: "0" }, null],
    [{}, null],
  ])("the files %o belong to %s", (files, group) => {
    expect(read([GPU], "7.0", files)).toMatchObject([{ group }]);
  });

  it("names the processes of a GPU, and an unreadable entry is not an absent one", () => {
    const process_info = { name: "python", pid: 42, memory_usage: {} };
    expect(read([{ ...GPU, processes: [{ process_info }] }])[0]?.processes).toEqual([{ pid: 42, name: "python" }]);
    for (const odd of ["N/A", {}, null])
      expect(read([{ ...GPU, processes: [{ process_info: odd }] }])[0]?.processes).toBeNull();
  });

  it("joins the partitions of a GPU", () => {
    const [gpu, ...more] = read([
      GPU,
      { ...GPU, uncorrectable: 1 },
      { ...GPU, processes: [{ process_info: { pid: 7 } }] },
    ]);
    expect(more).toEqual([]);
    expect(gpu).toMatchObject({
      faults: ["total_uncorrectable_count is 1"],
      recommends: "unknown",
      processes: [{ pid: 7 }],
    });
  });

  it("refuses outputs that are not whole, or that do not list the same GPUs", () => {
    const bad: Partial<Record<AmdCommand, string>>[] = [
      { static: "" },
      { static: "{}" },
      { metric: amdOutput("metric", [GPU]).slice(0, -20) },
      { metric: amdOutput("metric", []) },
      { process: JSON.stringify([{ gpu: 0 }]) },
      { "bad-pages": "AMDSMI_STATUS_DRIVER_NOT_LOADED" },
      { static: amdOutput("static", [{ ...GPU, pci: "N/A" }]) },
    ];
    for (const replaced of bad) expect(() => read([GPU], "7.0", FILES, replaced), JSON.stringify(replaced)).toThrow();
  });

  it("says of an output that is not JSON only that, because the output may contain a secret", () => {
    for (const metric of ["hunter2", '[{"gpu": hunter2'])
      expect(() => read([GPU], "7.0", FILES, { metric })).toThrow(
        /^The output of amd-smi metric is not readable: it is not JSON$/,
      );
  });

  it("reads the driver's files from the output of grep", () => {
    const at = "/tmp/host/sys/bus/pci/devices/0000:05:00.0";
    expect(
      filesByAddress(
        `${at}/mem_info_vram_used:299892736\n${at}/xgmi_hive_info/xgmi_hive_id:7\n${at}/other:1\nnonsense\n`,
      ),
    ).toEqual({
      "0000:05:00.0": { mem_info_vram_used: "299892736", "xgmi_hive_info/xgmi_hive_id": "7" },
    });
  });
});

describe("the shapes of amd-smi's outputs", () => {
  it.each(AMD_SMI_SAMPLES)("$name ($source)", (sample) => {
    const text = (row: object, isWrapped: boolean): string => {
      const rows = [{ gpu: 0, ...row }];
      return JSON.stringify(isWrapped ? { gpu_data: rows } : rows);
    };
    const { gpus } = parseAmdReport(
      {
        static: text(sample.static, sample.isWrapped),
        metric: text(sample.metric, sample.isWrapped),
        "bad-pages": text(sample.badPages, false),
        process: text(sample.process, false),
      },
      { "0000:05:00.0": FILES },
    );
    expect(gpus).toMatchObject([{ pci: "0000:05:00.0", processes: [], faults: [], ...sample.told }]);
    expect(gpus[0]?.recommends).toBe(sample.told.faults === undefined ? "none" : "unknown");
  });
});
