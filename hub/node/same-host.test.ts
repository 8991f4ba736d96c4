import { describe, expect, it } from "vitest";
import { compareGpus, otherHostBecause, provingMacs } from "./same-host.ts";

const [A, B] = ["b8:59:9f:00:00:0a", "b8:59:9f:00:00:0b"];
const host = (uuid: string, ...macs: string[]) => ({ system: { uuid }, interfaces: macs.map((mac) => ({ mac })) });
const machine = (hardware_uuid: string | null, ...macs: string[]) => ({ hardware_uuid, macs });

describe("the host of an agent is the host of a machine", () => {
  it("if it has one of the machine's MAC addresses and the same hardware UUID, in any spelling", () => {
    expect(otherHostBecause(host("U-1", B, A), machine("u-1", A))).toBeNull();
    expect(otherHostBecause(host("u-1", A.toUpperCase()), machine("U-1", A))).toBeNull();
  });

  it("also if only one of the two sides knows a UUID, because the MAC address still proves it", () => {
    expect(otherHostBecause(host("", A), machine("u-1", A))).toBeNull();
    expect(otherHostBecause(host("u-1", A), machine(null, A))).toBeNull();
  });

  it("but not with another UUID, without a common MAC address, or without any", () => {
    expect(otherHostBecause(host("u-2", A), machine("u-1", A))).toMatch(/hardware UUID u-2, and the machine has u-1/);
    expect(otherHostBecause(host("u-1", B), machine("u-1", A))).toMatch(/none of the machine's MAC addresses/);
    expect(otherHostBecause(host("u-1"), machine("u-1"))).toMatch(/MAAS knows none/);
  });

  it("and the zeros of an interface without a MAC address prove nothing", () => {
    const zeros = "00:00:00:00:00:00";
    expect(otherHostBecause(host("", zeros, ""), machine(null, zeros, ""))).not.toBeNull();
    expect(provingMacs([zeros, "", A, A.toUpperCase()])).toEqual([A]);
  });

  it.each([
    ["locally administered", "02:00:00:00:00:0a"],
    ["of a virtual machine", "52:54:00:00:00:0a"],
    ["of a group", "01:00:5e:00:00:0a"],
  ])("and a MAC address that several machines may have proves nothing: one %s", (_case, mac) => {
    expect(otherHostBecause(host("u-1", mac), machine("u-1", mac))).toMatch(/that only one machine can have/);
    expect(otherHostBecause(host("u-1", mac, A), machine("u-1", mac, B))).toContain(B);
    expect(provingMacs([mac, mac.toUpperCase()])).toEqual([]);
  });

  it("and each universally administered MAC address proves it", () => {
    for (const digit of ["0", "4", "8", "c"]) expect(provingMacs([`0${digit}:10:18:00:00:01`])).toHaveLength(1);
    for (const digit of [..."1235679abdef"]) expect(provingMacs([`0${digit}:10:18:00:00:01`])).toEqual([]);
  });
});

describe("the GPUs of an adopted host", () => {
  const nvidia = (count: number) => Array.from({ length: count }, () => ({ vendor: "NVIDIA Corporation" }));
  const amd = (count: number) =>
    Array.from({ length: count }, () => ({ vendor: "Advanced Micro Devices, Inc. [AMD/ATI]" }));
  const other = [{ vendor: "ASPEED Technology, Inc." }];
  const sku = (gpuVendor: "nvidia" | "amd" | "none", gpusTotal: number) => ({ gpuVendor, gpusTotal });

  it.each([
    ["as many as the SKU has", [...nvidia(8), ...other], sku("nvidia", 8), "True"],
    ["as many of AMD", amd(8), sku("amd", 8), "True"],
    ["none for an SKU without GPUs", other, sku("none", 0), "True"],
    ["fewer", nvidia(7), sku("nvidia", 8), "False"],
    ["more", nvidia(9), sku("nvidia", 8), "False"],
    ["of another vendor", amd(8), sku("nvidia", 8), "False"],
    ["of two vendors", [...nvidia(8), ...amd(1)], sku("nvidia", 8), "False"],
    ["some for an SKU without GPUs", amd(1), sku("none", 0), "False"],
    ["not listed, which says nothing", other, sku("amd", 8), "Unknown"],
  ] as const)("%s", (_, gpus, of, status) => {
    expect(compareGpus(gpus, of).status).toBe(status);
  });
});
