import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { HostFolder, quietAgentLog } from "../test/fakes/hub/host-folder.ts";
import { newTaskId } from "../test/fakes/hub/orders.ts";
import { footprint, isUninstalling, markUninstalling, removeFootprint } from "./uninstall.ts";

const OWN = [
  "etc/muster/.muster.AbCdEf",
  "etc/muster/agent.json",
  "etc/muster/ca.pem",
  "etc/muster/enrollment-token",
  "etc/muster/roce-routing.conf",
  "var/lib/muster/.0123456789ab.tmp",
  "var/lib/muster/agent/identity.json",
  "var/lib/muster/bootstrap/20-agent-bootstrap.status",
  "var/lib/muster/hardware-sync.json",
  "etc/systemd/system/maas_hardware_sync.service.d/50-muster.conf",
  "etc/systemd/system/maas_hardware_sync.timer.d/50-muster-interval.conf",
];
const OF_THE_HUB = [
  "etc/muster/hub.env",
  "var/lib/muster/hub/postgres/cluster/data/PG_VERSION",
  "var/lib/muster/postgres-abc/cluster/data/PG_VERSION",
];
const MARKER = "var/lib/muster/uninstalling";

let host: HostFolder;
beforeEach(() => {
  host = new HostFolder();
  host.tool("systemctl");
  host.tool("systemd-run");
  for (const file of OWN) host.write(file, "");
});
afterEach(() => host.remove());

const uninstall = async () => {
  await markUninstalling(host.system, newTaskId());
  await removeFootprint(host.system, quietAgentLog);
};

describe("removing the agent's footprint", () => {
  it("removes both folders when they belong to Muster's agent alone", async () => {
    await uninstall();
    expect([host.has("etc/muster"), host.has("var/lib/muster")]).toEqual([false, false]);
    for (const kind of ["service", "timer"])
      expect(host.has(`etc/systemd/system/maas_hardware_sync.${kind}.d`)).toBe(false);
    expect(host.calls()).toEqual(["systemctl disable muster-agent.service", "systemctl daemon-reload"]);
  });

  it("keeps all files of a hub on the same machine", async () => {
    for (const file of OF_THE_HUB) host.write(file, "");
    expect(
      (await footprint(host.system)).filter((path) => OF_THE_HUB.some((one) => `/${one}`.startsWith(path))),
    ).toEqual([]);
    await uninstall();
    expect(OF_THE_HUB.filter((file) => !host.has(file))).toEqual([]);
    expect([...OWN, MARKER].filter((file) => host.has(file))).toEqual([]);
  });

  it("purges the package until that succeeds, and continues at the next boot", async () => {
    host.write("var/lib/dpkg/info/muster-agent.list", "");
    await uninstall();
    const [purge = "", ...more] = host.calls().filter((call) => call.startsWith("systemd-run"));
    expect(more).toEqual([]);
    expect(purge).toMatch(/ dpkg --purge muster-agent$/);
    for (const property of ["Restart=on-failure", "RestartSec=15", "StartLimitBurst=240"])
      expect(purge).toContain(` -p ${property} `);
    // At boot, the marker file `uninstalling` and the enabled unit start the agent, which continues its own removal. Only the purge of the agent's
    // package removes the marker file and the agent's unit.
    expect(await isUninstalling(host.system)).toBe(true);
    expect(host.calls()).not.toContain("systemctl disable muster-agent.service");
    expect(OWN.filter((file) => host.has(file))).toEqual([]);
    await removeFootprint(host.system, quietAgentLog);
    expect(host.calls().filter((call) => call === purge)).toHaveLength(2);
  });
});
