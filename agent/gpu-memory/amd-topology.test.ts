import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { AmdUuid, PciAddress } from "../../shared/gpu-memory.ts";
import { amdNode, amdUuidOfFile } from "./amd-topology.ts";
import { hipFolders, hipLibraries } from "./hip-files.ts";

const properties = (more: Readonly<Record<string, number | bigint | string>>): string =>
  Object.entries({ cpu_cores_count: 0, simd_count: 1216, ...more })
    .map(([name, value]) => `${name} ${value}\n`)
    .join("");

describe("a node of amdkfd", () => {
  it.each([
    [90_402, "gfx942"],
    [90_010, "gfx90a"],
    [90_500, "gfx950"],
    [90_008, "gfx908"],
    [100_306, "gfx1036"],
    [110_000, "gfx1100"],
    [120_001, "gfx1201"],
  ])("with the version %i has the instruction set %s", (version, arch) => {
    expect(amdNode(properties({ gfx_target_version: version }))?.arch).toBe(arch);
  });

  it("is no GPU without a version of the instruction set", () => {
    expect(amdNode(properties({ gfx_target_version: 0 }))).toBeNull();
    expect(amdNode("")).toBeNull();
  });

  it("has the place and the id of its GPU (generated nodes)", () => {
    fc.assert(
      fc.property(
        fc.record({ domain: fc.nat(0xffff), bus: fc.nat(255), device: fc.nat(31), part: fc.nat(7) }),
        fc.bigInt({ min: 1n, max: 2n ** 64n - 1n }),
        ({ domain, bus, device, part }, id) => {
          const node = amdNode(
            properties({
              gfx_target_version: 90_402,
              domain,
              location_id: bus * 256 + device * 8 + part,
              unique_id: id,
            }),
          );
          const hex = (number: number, digits: number) => number.toString(16).padStart(digits, "0");
          expect(node?.pciAddress).toBe(`${hex(domain, 4)}:${hex(bus, 2)}:${hex(device, 2)}.${part}`);
          expect(PciAddress.safeParse(node?.pciAddress).success).toBe(true);
          expect(AmdUuid.parse(node?.uuid)).toBe(amdUuidOfFile(`${id.toString(16).padStart(16, "0")}\n`));
        },
      ),
    );
  });

  it.each(["", "0000000000000000\n", "not a number", "0x1234", "12345678901234567"])("has no id for %j", (text) => {
    expect(amdUuidOfFile(text)).toBeNull();
    expect(amdUuidOfFile(undefined)).toBeNull();
  });
});

describe("the folders of HIP", () => {
  it("begin with the newest release of ROCm", () => {
    expect(hipFolders(["amdgpu", "rocm", "rocm-6.3.1", "rocm-6.12.0", "rocm-7.0.2", "rocm-backup"])).toEqual([
      "/opt/rocm-7.0.2/lib",
      "/opt/rocm-6.12.0/lib",
      "/opt/rocm-6.3.1/lib",
      "/opt/rocm/lib",
      "/usr/lib/x86_64-linux-gnu",
      "/usr/lib64",
    ]);
    expect(hipFolders([])).toEqual(["/usr/lib/x86_64-linux-gnu", "/usr/lib64"]);
  });

  it.each([
    [["libamdhip64.so", "libamdhip64.so.6", "libamdhip64.so.6.3.60301", "libhiprtc.so.6"], "6", "libhiprtc.so.6"],
    [["libamdhip64.so.5", "libhiprtc-builtins.so.5"], "5", "libamdhip64.so.5"],
    [["libamdhip64.so.6", "libamdhip64.so.10", "libhiprtc.so.6"], "10", "libamdhip64.so.10"],
  ])("name the newest libraries of %j", (names, version, hiprtc) => {
    expect(hipLibraries(names)).toEqual({ hip: `libamdhip64.so.${version}`, hiprtc });
  });

  it("may be without HIP", () => {
    expect(hipLibraries(["libamdhip64.so", "libhiprtc.so.6", "libamdhip64.so.x"])).toBeNull();
  });
});
