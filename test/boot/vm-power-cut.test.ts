import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { pipeline } from "node:stream/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { until } from "../support/until.ts";
import { type BootWorld, startBootWorld } from "./boot-world.ts";
import type { VmHost } from "./vm-host.ts";
import { VmHosts } from "./vm-hosts.ts";

/** Each power cut in this test loses the data that the virtual machine has not written to disk. */
/** The time-out for the boot of a virtual machine, which is long enough for busy computers without hardware virtualisation. */
const BOOT_MS = 3_600_000;
let world: BootWorld<VmHosts>;
let host: VmHost;
let id: string;
const blank = new Map<string, string>();
beforeAll(async () => {
  world = await startBootWorld({
    boxes: 1,
    lane: VmHosts.start,
    profile: { enable_phase2_roce: false },
  });
  const switchedOn = new Promise<VmHost>((resolve) => {
    world.hosts.prepare = async (one) => {
      resolve(one);
      return [];
    };
  });
  ({ id } = await world.onboard(1));
  host = await switchedOn;
  await until("the machine to run", () => (host.isRunning ? true : undefined), {
    signal: world.hosts.failed,
  });
  for (const serial of host.dataDisks) blank.set(serial, await sha256Of(host.diskFile(serial)));
}, BOOT_MS);
afterAll(() => world?.stop());

async function sha256Of(file: string): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(file), hash);
  return hash.digest("hex");
}
/**
 * Waits until a shell condition is true in the virtual machine, and then cuts the machine's power. The virtual machine itself checks the condition in
 * a loop, so that the test does not miss a condition that holds only briefly.
 */
async function cutPowerOnce(condition: string): Promise<void> {
  await host.answers();
  await host.shell(`until ${condition}; do sleep 0.05; done`, BOOT_MS);
  await host.powerCut();
  host.start();
}
const STATUS = "/var/lib/muster/bootstrap/20-agent-bootstrap.status";

describe("a first boot with power cuts", () => {
  it("completes after a cut while the agent's package is half installed and a cut after the agent's part succeeded", {
    timeout: BOOT_MS,
  }, async () => {
    await cutPowerOnce("[ -x /usr/bin/muster-agent ]");
    await cutPowerOnce(`grep -qs '"exit_code":0,' ${STATUS}`);
    const end = await world.ended(id, BOOT_MS);
    expect(end.status, `${end.error_message}\n${host.console().slice(-4000)}`).toBe("completed");
    expect(world.maas.sim.region.state.counters[end.maas_system_id ?? ""]).toMatchObject({ deploy: 1, boot: 1 });
    expect(await world.api.node(end.node_id ?? "")).toMatchObject({
      status: "active",
      generation: 1,
    });
  });

  it("leaves nothing half installed", async () => {
    expect(await host.shell("dpkg --audit")).toBe("");
    expect(await host.shell("dpkg -s muster-agent")).toContain("Status: install ok installed");
    expect(await host.shell("dpkg --verify muster-agent | grep -v ' /usr/share/doc' || true")).toBe("");
    expect(await host.shell("systemctl is-enabled muster-agent")).toBe("enabled");
    expect(await host.shell("systemctl --failed --no-legend")).toBe("");
    const statuses = (await host.shell("cat /var/lib/muster/bootstrap/*.status")).split("\n");
    expect(statuses.map((line) => (JSON.parse(line) as { exit_code: number }).exit_code)).toEqual([0, 0, 0]);
  });

  it("wrote nothing to the data disks, because the profile does not use them", async () => {
    for (const [serial, before] of blank) expect(await sha256Of(host.diskFile(serial)), serial).toBe(before);
    expect(await host.shell("findmnt -rno TARGET | grep ^/share || true")).toBe("");
  });
});
