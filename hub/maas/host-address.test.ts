import { describe, expect, it } from "vitest";
import { hostAddresses, type InterfaceAddress } from "./host-address.ts";

const on = (name: string, address: string, boots = false): InterfaceAddress => ({ interface: name, boots, address });
const roce = on("enp25s0np0", "172.30.0.1");
const boot = on("eno8303", "10.81.0.5", true);

describe("the address by which a host is reached", () => {
  it("belongs to the site's preferred interface, wherever MAAS lists that", () => {
    expect(hostAddresses([roce, boot], "eno8303")).toEqual(["10.81.0.5"]);
    expect(hostAddresses([boot, on("ens19", "10.1.0.1"), on("ens19", "10.1.0.2")], "ens19")).toEqual([
      "10.1.0.1",
      "10.1.0.2",
    ]);
  });
  it("belongs to the boot interface if the preferred one has none, and never to a RoCE link", () => {
    expect(hostAddresses([roce, boot], "ens19")).toEqual(["10.81.0.5"]);
    expect(hostAddresses([roce], "ens19")).toEqual([]);
  });
  it("is unknown if the interfaces are unknown", () => {
    expect(hostAddresses([], "eno8303")).toEqual([]);
  });
});
