import { describe, expect, it } from "vitest";
import type { SkuHardware } from "../../shared/api/sites.ts";
import { compareHardware, type GpuCount, type SeenHardware, type WantedHardware } from "./hardware-verdict.ts";

const GIB = 2 ** 30;
const gpus = (count: number, vendor: string) =>
  Array.from({ length: count }, () => ({ vendor, model: "", bus: "", memory_bytes: null }));
const nvidia = (count: number) => gpus(count, "NVIDIA Corporation");
const amd = (count: number) => gpus(count, "Advanced Micro Devices, Inc. [AMD/ATI]");
const screen = gpus(1, "ASPEED Technology, Inc.");
const disk = (gb: number) => ({ name: "", model: "", serial: "", kind: "", bytes: gb * 1e9 });

const HOST: SeenHardware = {
  gpus: [...screen, ...nvidia(8)],
  memory_bytes: 2000 * GIB,
  disks: [disk(480), disk(480), ...Array.from({ length: 8 }, () => disk(3840.7))],
  interfaces: [
    ...Array.from({ length: 8 }, () => ({ speed_mbps: 400_000 })),
    { speed_mbps: 25_000 },
    { speed_mbps: null },
  ],
};
const SKU: WantedHardware = { gpuVendor: "nvidia", gpusTotal: 8, hardware: {} };
const judge = (seen: Partial<SeenHardware>, wanted: Partial<WantedHardware> = {}, count: GpuCount = "counted") => {
  const { status, message } = compareHardware({ ...HOST, ...seen }, { ...SKU, ...wanted }, count);
  return status === "True" ? "True" : `${status}: ${message}`;
};

describe("the GPUs of a host", () => {
  it.each<[string, SeenHardware["gpus"], Partial<WantedHardware>, string]>([
    ["as many as the SKU has", nvidia(8), {}, "True"],
    ["as many of AMD", amd(8), { gpuVendor: "amd" }, "True"],
    ["none for a SKU without GPUs", screen, { gpuVendor: "none", gpusTotal: 0 }, "True"],
    ["seven of eight", nvidia(7), {}, "False: The host has 7 GPUs of NVIDIA instead of 8."],
    ["none of eight", screen, {}, "False: The host has 0 GPUs of NVIDIA instead of 8."],
    ["one more", nvidia(9), {}, "False: The host has 9 GPUs of NVIDIA instead of 8."],
    ["of another vendor", amd(8), {}, "False: The host has 0 GPUs of NVIDIA instead of 8, 8 GPUs of AMD instead of 0."],
    [
      "some for a SKU without GPUs",
      amd(1),
      { gpuVendor: "none", gpusTotal: 0 },
      "False: The host has 1 GPUs of AMD instead of 0.",
    ],
  ])("%s", (_, seen, wanted, said) => expect(judge({ gpus: seen }, wanted)).toBe(said));

  it("say nothing if an agent of an older version lists none, unless an earlier look has seen them", () => {
    const of = (count: GpuCount, seen = screen) => judge({ gpus: seen }, {}, count).slice(0, 7);
    expect([of("some"), of("known"), of("counted"), of("some", nvidia(7)), of("some", nvidia(8))]).toEqual([
      ...["Unknown", "False: ", "False: ", "False: ", "True"],
    ]);
    expect(judge({ gpus: [] }, { gpuVendor: "none", gpusTotal: 0 }, "some")).toBe("True");
    const less = { hardware: { memory_gib: 4096 } };
    expect(judge({ gpus: [] }, less, "some")).toBe("False: The host has 2000 GiB of memory instead of 4096.");
  });
});

describe("the other hardware of a host", () => {
  const of = (hardware: SkuHardware, seen: Partial<SeenHardware> = {}) => judge(seen, { hardware });
  it.each<[SkuHardware, string]>([
    [{}, "True"],
    [{ memory_gib: 2048 }, "True"],
    [{ memory_gib: 2304 }, "False: The host has 2000 GiB of memory instead of 2304."],
    [
      {
        disks: [
          { count: 2, min_gb: 480 },
          { count: 8, min_gb: 3840 },
        ],
      },
      "True",
    ],
    [
      {
        disks: [
          { count: 3, min_gb: 480 },
          { count: 8, min_gb: 3840 },
        ],
      },
      "False: The host has 2 disks of 480 GB instead of 3.",
    ],
    [{ disks: [{ count: 9, min_gb: 3840 }] }, "False: The host has 8 disks of 3840 GB instead of 9."],
    [
      {
        nics: [
          { count: 8, min_gbps: 400 },
          { count: 1, min_gbps: 25 },
        ],
      },
      "True",
    ],
    [
      {
        nics: [
          { count: 8, min_gbps: 400 },
          { count: 2, min_gbps: 25 },
        ],
      },
      "False: The host has 1 links of 25 Gbit/s instead of 2.",
    ],
    [{ nics: [{ count: 8, min_gbps: 800 }] }, "False: The host has 0 links of 800 Gbit/s instead of 8."],
  ])("%j: %s", (hardware, said) => expect(of(hardware)).toBe(said));

  it("is unknown, and not lost, where the agent could not read it", () => {
    const unread = (...parts: NonNullable<SeenHardware["unread"]>): Partial<SeenHardware> => ({
      ...{ unread: parts, ...(parts.includes("gpus") ? { gpus: [] } : {}) },
      ...{
        ...(parts.includes("disks") ? { disks: [] } : {}),
        ...(parts.includes("interfaces") ? { interfaces: [] } : {}),
      },
    });
    const hardware = { disks: [{ count: 8, min_gb: 3840 }], nics: [{ count: 8, min_gbps: 400 }] };
    const of3 = (seen: Partial<SeenHardware>) => compareHardware({ ...HOST, ...seen }, { ...SKU, hardware }, "counted");
    for (const part of ["gpus", "disks", "interfaces"] as const)
      expect(of3(unread(part))).toMatchObject({ status: "Unknown", reason: "Unreadable" });
    expect(of3({ ...unread("disks"), gpus: nvidia(7) })).toMatchObject({ status: "False" });
    expect(judge(unread("disks", "interfaces"))).toBe("True");
  });

  it("may be more than the SKU says", () => {
    expect(of({ disks: [{ count: 1, min_gb: 100 }], nics: [{ count: 1, min_gbps: 1 }], memory_gib: 1 })).toBe("True");
    expect(of({ disks: [{ count: 1, min_gb: 100 }] }, { disks: [] })).toBe(
      "False: The host has 0 disks of 100 GB instead of 1.",
    );
  });
});
