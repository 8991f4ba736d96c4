import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { Inventory } from "../../shared/inventory.ts";
import { quietAgentLog } from "../../test/fakes/hub/host-folder.ts";
import { amdMemoryOf, readInventory, withGpusOnBus } from "./inventory.ts";
import { readPciGpus } from "./pci-gpus.ts";

describe("inventory", () => {
  it("has the memory of an AMD GPU as its driver states it, whichever form the address has", async () => {
    const folder = mkdtempSync(join(tmpdir(), "muster-gpus-"));
    try {
      const device = join(folder, "0000:9f:00.0");
      mkdirSync(device);
      expect(await amdMemoryOf("9f:00.0", folder)).toBeNull();
      writeFileSync(join(device, "mem_info_vram_total"), "206141652992\n");
      expect(await amdMemoryOf("9f:00.0", folder)).toBe(206_141_652_992);
      expect(await amdMemoryOf("0000:9F:00.0", folder)).toBe(206_141_652_992);
      expect(await amdMemoryOf("../9f:00.0", folder)).toBeNull();
      writeFileSync(join(device, "mem_info_vram_total"), "much\n");
      expect(await amdMemoryOf("9f:00.0", folder)).toBeNull();
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it("lists the GPUs of the PCI bus that the library does not know, each once", async () => {
    const folder = mkdtempSync(join(tmpdir(), "muster-bus-"));
    try {
      expect(await readPciGpus(folder)).toBeNull();
      for (const [address, vendor, kind] of [
        ["0000:05:00.0", "0x1002", "0x120000"],
        ["0000:15:00.0", "0x10de", "0x030200"],
        ["0000:16:00.0", "0x10de", "0x068000"],
        ["0000:c0:00.0", "0x1a03", "0x030000"],
      ] as const) {
        const device = join(folder, "sys/bus/pci/devices", address);
        mkdirSync(device, { recursive: true });
        writeFileSync(join(device, "vendor"), `${vendor}\n`);
        writeFileSync(join(device, "class"), `${kind}\n`);
      }
      const onBus = await readPciGpus(folder);
      expect(onBus).toEqual([
        { vendor: "amd", address: "0000:05:00.0" },
        { vendor: "nvidia", address: "0000:15:00.0" },
      ]);
      const known = [
        { vendor: "ASPEED Technology, Inc.", model: "", bus: "c0:00.0", memory_bytes: null },
        { vendor: "NVIDIA Corporation", model: "H100", bus: "15:00.0", memory_bytes: 1 },
      ];
      expect(withGpusOnBus(known, onBus ?? []).map(({ vendor, bus }) => `${vendor} ${bus}`)).toEqual([
        ...["NVIDIA Corporation 15:00.0", "Advanced Micro Devices, Inc. [AMD/ATI] 0000:05:00.0"],
        "ASPEED Technology, Inc. c0:00.0",
      ]);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it("of this machine matches the protocol", async () => {
    const inventory = await readInventory("/", { hostname: "gpu-01", bootId: "boot-1" }, quietAgentLog);
    expect(Inventory.parse(JSON.parse(JSON.stringify(inventory)))).toEqual(inventory);
    expect(inventory).toMatchObject({ hostname: "gpu-01", boot_id: "boot-1" });
    expect(inventory.memory_bytes).toBeGreaterThan(0);
  });
});
