import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { Inventory } from "../../shared/inventory.ts";
import { quietAgentLog } from "../../test/fakes/hub/host-folder.ts";
import { amdMemoryOf, readInventory } from "./inventory.ts";

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

  it("of this machine matches the protocol", async () => {
    const inventory = await readInventory("gpu-01", "boot-1", quietAgentLog);
    expect(Inventory.parse(JSON.parse(JSON.stringify(inventory)))).toEqual(inventory);
    expect(inventory).toMatchObject({ hostname: "gpu-01", boot_id: "boot-1" });
    expect(inventory.memory_bytes).toBeGreaterThan(0);
  });
});
