import { afterEach, beforeEach, expect, it } from "vitest";
import { HostFolder } from "../../test/fakes/hub/host-folder.ts";
import { bootFacts } from "./boot-facts.ts";

let host: HostFolder;
beforeEach(() => {
  host = new HostFolder();
});
afterEach(() => host.remove());

const EFIVARS = "sys/firmware/efi/efivars";
const GLOBAL = "8be4df61-93ca-11d2-aa0d-00e098032b8c";
const flag = (name: string, value: number) =>
  host.write(`${EFIVARS}/${name}`, `\u0006\u0000\u0000\u0000${String.fromCharCode(value)}`);
const secureBoot = async () => (await bootFacts(host.system)).secure_boot;

it("knows nothing of a host whose firmware it cannot read", async () => {
  expect(await bootFacts(host.system)).toEqual({ secure_boot: null, lockdown: null });
  host.write(`${EFIVARS}/Boot0000-${GLOBAL}`, "x");
  expect(await secureBoot()).toBeNull();
  host.write(`${EFIVARS}/SecureBoot-${GLOBAL}`, "\u0006\u0000");
  expect(await secureBoot()).toBeNull();
});

it("calls Secure Boot off on a host that started without UEFI", async () => {
  host.write("sys/firmware/dmi/tables/DMI", "x");
  expect(await secureBoot()).toBe("off");
});

it("calls Secure Boot on only if the firmware and shim check what they start", async () => {
  flag(`SecureBoot-${GLOBAL}`, 1);
  expect(await secureBoot()).toBe("on");
  flag(`SetupMode-${GLOBAL}`, 1);
  expect(await secureBoot()).toBe("off");
  flag(`SetupMode-${GLOBAL}`, 0);
  flag("MokSBStateRT-605dab50-e046-4300-abb6-3dd810dd8b23", 1);
  expect(await secureBoot()).toBe("off");
  flag("MokSBStateRT-605dab50-e046-4300-abb6-3dd810dd8b23", 0);
  expect(await secureBoot()).toBe("on");
  flag(`SecureBoot-${GLOBAL}`, 0);
  expect(await secureBoot()).toBe("off");
});

it("reads the lockdown of the kernel", async () => {
  host.write("sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
  expect((await bootFacts(host.system)).lockdown).toBe("integrity");
});
