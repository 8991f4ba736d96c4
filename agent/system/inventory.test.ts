import { rmSync, symlinkSync } from "node:fs";
import { uptime } from "node:os";
import { afterEach, describe, expect, it } from "vitest";
import { Inventory } from "../../shared/inventory.ts";
import { HostFolder, quietAgentLog } from "../../test/fakes/hub/host-folder.ts";
import { GpuDetails, parseNvidiaList } from "./gpu-details.ts";
import { readInventory } from "./inventory.ts";
import { readPciGpus } from "./pci-gpus.ts";

let host: HostFolder;
afterEach(() => host?.remove());

const device = (address: string, files: Readonly<Record<string, string>>): void => {
  for (const [file, text] of Object.entries(files)) host.write(`sys/bus/pci/devices/${address}/${file}`, `${text}\n`);
};
const LSPCI = `cat <<'L'
0000:05:00.0 "Processing accelerators" "Advanced Micro Devices, Inc. [AMD/ATI]" "Aqua Vanjaram [Instinct MI300X]" -p00 "x" "y"
0000:15:00.0 "3D controller" "NVIDIA Corporation" "GH100 [H100 SXM5 80GB]" -ra1 "NVIDIA Corporation" "Device 16c1"
L`;

describe("the inventory's GPUs", () => {
  it("are those of the bus, with their models and memory", async () => {
    host = new HostFolder();
    expect(await readPciGpus(host.root)).toBeNull();
    expect((await host.system.inventory()).gpus_counted, "without a PCI bus").toBe(false);
    device("0000:05:00.0", {
      vendor: "0x1002",
      class: "0x120000",
      mem_info_vram_total: "206141652992",
      unique_id: "7D0A1B2C3D4E5F60",
    });
    device("0000:15:00.0", { vendor: "0x10de", class: "0x030200" });
    device("0000:16:00.0", { vendor: "0x10de", class: "0x068000" });
    device("0000:b0:00.0", { vendor: "0x1002", class: "0x030000" });
    device("0000:c0:00.0", { vendor: "0x1a03", class: "0x030000" });
    host.tool("lspci", LSPCI);
    host.tool("nvidia-smi", "echo '00000000:15:00.0, NVIDIA H100 80GB HBM3, 81559, 1654422006434'");
    const { gpus, read_at_uptime, gpus_counted } = await host.system.inventory();
    expect(gpus_counted).toBe(true);
    expect(uptime() - (read_at_uptime ?? Number.NaN), "seconds since the agent read the inventory").toBeLessThan(120);
    expect(gpus.map(({ vendor, model, bus, memory_bytes }) => [vendor.slice(0, 6), model, bus, memory_bytes])).toEqual([
      ["Advanc", "Aqua Vanjaram [Instinct MI300X]", "0000:05:00.0", 206_141_652_992],
      ["NVIDIA", "GH100 [H100 SXM5 80GB]", "0000:15:00.0", 81559 * 1024 * 1024],
    ]);
    expect(gpus.map(({ serial }) => serial)).toEqual(["7d0a1b2c3d4e5f60", "1654422006434"]);
    // The driver may hang now that a GPU has left the bus, so nobody asks it again.
    rmSync(host.path("sys/bus/pci/devices/0000:05:00.0"), { recursive: true });
    expect((await host.system.inventory()).gpus).toEqual(gpus.slice(1));
    expect(host.calls().filter((call) => call.startsWith("nvidia-smi"))).toHaveLength(1);
    expect(parseNvidiaList("00010000:18:00.0, NVIDIA L4, [N/A], [N/A]").get("00010000:18:00.0")).toEqual({
      model: "NVIDIA L4",
      memory_bytes: null,
      serial: null,
    });
    device("0000:05:00.0", { vendor: "0x1002", class: "0x120000", unique_id: "0000000000000000" });
    const [unnamed] = await new GpuDetails(host.root, host.system.attempt).of([
      { vendor: "amd", address: "0000:05:00.0" },
    ]);
    expect(unnamed).not.toHaveProperty("serial");
  });

  it("are listed while the driver hangs, which gets no second program", async () => {
    host = new HostFolder();
    host.tool("nvidia-smi", "exec sleep 60");
    const details = new GpuDetails(host.root, host.system.attempt, { timeoutMs: 100, graceMs: 100 });
    const gpu = { vendor: "nvidia", address: "0000:15:00.0" } as const;
    for (let n = 0; n < 2; n += 1)
      expect(await details.of([gpu])).toMatchObject([{ bus: gpu.address, memory_bytes: null }]);
    expect(host.calls()).toHaveLength(1);
  });
});

describe("the inventory's interfaces", () => {
  it("are the host's ports, up or not, and no part of a port", async () => {
    host = new HostFolder();
    const nic = (name: string, files: Readonly<Record<string, string>>): void => {
      for (const [file, text] of Object.entries(files)) host.write(`sys/class/net/${name}/${file}`, `${text}\n`);
    };
    const bonded = { address: "aa:00:00:00:00:00", speed: "100000", "device/vendor": "0x15b3" };
    nic("eth1", { ...bonded, "bonding_slave/perm_hwaddr": "aa:00:00:00:00:01" });
    nic("eth2", { ...bonded, speed: "-1", "bonding_slave/perm_hwaddr": "aa:00:00:00:00:02" });
    nic("eth3", { ...bonded, "device/physfn/vendor": "0x15b3" });
    nic("bond0", { address: "aa:00:00:00:00:00", speed: "200000" });
    host.write("sys/class/net/bonding_masters", "bond0\n");
    expect((await host.system.inventory()).interfaces).toEqual([
      { name: "eth1", mac: "aa:00:00:00:00:01", ipv4: [], speed_mbps: 100_000 },
      { name: "eth2", mac: "aa:00:00:00:00:02", ipv4: [], speed_mbps: null },
    ]);
  });
});

describe("the inventory", () => {
  it("names a part that the agent could not read", async () => {
    host = new HostFolder();
    rmSync(host.path("sys/class/net"), { recursive: true });
    const { unread, disks, interfaces } = await host.system.inventory();
    expect({ unread, disks, interfaces }).toEqual({ unread: ["disks", "interfaces"], disks: [], interfaces: [] });
    host.write("sys/class/net/eth0/address", "aa:00:00:00:00:01\n");
    host.write("sys/devices/pci0000:00/block/sda/size", "7501476528\n");
    host.write("sys/devices/pci0000:00/block/sda/removable", "0\n");
    host.write("sys/class/block/.keep", "");
    rmSync(host.path("sys/class/block/.keep"));
    symlinkSync("../../devices/pci0000:00/block/sda", host.path("sys/class/block/sda"));
    const whole = await host.system.inventory();
    expect(whole).not.toHaveProperty("unread");
    expect(whole.disks).toMatchObject([{ name: "/dev/sda", bytes: 7501476528 * 512 }]);
  });

  it("of this machine matches the protocol", async () => {
    host = new HostFolder();
    const details = new GpuDetails("/", host.system.attempt);
    const inventory = await readInventory("/", { hostname: "gpu-01", bootId: "boot-1" }, details, quietAgentLog);
    expect(Inventory.parse(JSON.parse(JSON.stringify(inventory)))).toEqual(inventory);
    expect(inventory).toMatchObject({ hostname: "gpu-01", boot_id: "boot-1" });
    expect(inventory.memory_bytes).toBeGreaterThan(0);
  });
});
