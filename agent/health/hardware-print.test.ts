import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { HostFolder } from "../../test/fakes/hub/host-folder.ts";
import { ipv4Addresses } from "../system/nics.ts";
import { hardwarePrint } from "./hardware-print.ts";

let host: HostFolder;
beforeEach(() => {
  host = new HostFolder();
  for (const port of ["rail0", "rail1"]) {
    mkdirSync(join(host.root, "sys/class/net", port, "device"), { recursive: true });
    writeFileSync(join(host.root, "sys/class/net", port, "speed"), "400000\n");
  }
  mkdirSync(join(host.root, "sys/class/net/docker0"), { recursive: true });
});
afterEach(() => host.remove());

const print = (addresses: Readonly<Record<string, readonly string[]>>) =>
  hardwarePrint(host.system, (name) => [...(addresses[name] ?? [])]);

it("changes when a port gains, loses or changes an address, and whatever the order of the addresses is", async () => {
  const before = await print({ rail0: ["172.30.0.1", "10.0.0.1"] });
  expect(await print({ rail0: ["10.0.0.1", "172.30.0.1"] })).toBe(before);
  const others = [
    {},
    { rail0: ["172.30.0.1"] },
    { rail1: ["172.30.0.1", "10.0.0.1"] },
    { rail0: ["172.30.0.2", "10.0.0.1"] },
  ];
  const prints = await Promise.all(others.map(print));
  expect(new Set([before, ...prints]).size).toBe(5);
});

it("changes with the addresses of bonds and VLANs", async () => {
  mkdirSync(join(host.root, "sys/class/net/bond0/bonding"), { recursive: true });
  mkdirSync(join(host.root, "sys/class/net/rail0.7"), { recursive: true });
  mkdirSync(join(host.root, "proc/net/vlan"), { recursive: true });
  writeFileSync(join(host.root, "proc/net/vlan/rail0.7"), "");
  const prints = await Promise.all([{}, { bond0: ["172.30.0.1"] }, { "rail0.7": ["172.30.0.1"] }].map(print));
  expect(new Set(prints).size).toBe(3);
});

it("does not change with the addresses of containers, which come and go", async () => {
  expect(await print({ docker0: ["172.17.0.1"] })).toBe(await print({}));
});

it("reads the addresses of this computer, and none for a folder that stands for a host", () => {
  expect(ipv4Addresses("/")("lo")).toContain("127.0.0.1");
  expect(ipv4Addresses("/")("no-such-interface")).toEqual([]);
  expect(ipv4Addresses(host.root)("lo")).toEqual([]);
});
