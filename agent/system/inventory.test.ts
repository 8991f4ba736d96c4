import { describe, expect, it } from "vitest";
import { Inventory } from "../../shared/inventory.ts";
import { quietAgentLog } from "../../test/fakes/hub/host-folder.ts";
import { readInventory } from "./inventory.ts";

describe("inventory", () => {
  it("of this machine matches the protocol", async () => {
    const inventory = await readInventory("gpu-01", "boot-1", quietAgentLog);
    expect(Inventory.parse(JSON.parse(JSON.stringify(inventory)))).toEqual(inventory);
    expect(inventory).toMatchObject({ hostname: "gpu-01", boot_id: "boot-1" });
    expect(inventory.memory_bytes).toBeGreaterThan(0);
  });
});
