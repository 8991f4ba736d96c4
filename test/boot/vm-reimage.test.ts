import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Profile } from "../../shared/api/profiles.ts";
import { until } from "../support/until.ts";
import { type BootWorld, startBootWorld } from "./boot-world.ts";
import { hashOf, LEDGER, layDisks, MOUNTS, PRIVATE_MOUNT } from "./vm-disks.ts";
import { ROOT_MOUNT, type VmHost } from "./vm-host.ts";
import { VmHosts } from "./vm-hosts.ts";

/**
 * The test installs one machine twice, with foreign data on its disks. Only the profile of the second installation permits erasing the data on the
 * disks. At the end, the test boots the machine's first operating system once more.
 */
const BOOT_MS = 3_600_000;
const SIGNED = ["signed", "table", "luks"];
/** The disks of the virtual machine whose bytes show whether a program has written to them. */
const QUIET_DISKS = [...SIGNED, "private"];
let world: BootWorld<VmHosts>;
let host: VmHost;
let id: string;
let first: Awaited<ReturnType<BootWorld["ended"]>>;
let nodeId: string;
let old: VmHost;
const machineIds: string[] = [];
const written = new Map<string, string>();
beforeAll(async () => {
  world = await startBootWorld({
    boxes: 1,
    lane: VmHosts.start,
    profile: { enable_phase2_roce: false, initialize_extra_disks: true },
  });
  world.hosts.prepare = async (one) => {
    if (host === undefined) {
      await layDisks(one);
      for (const serial of QUIET_DISKS) written.set(serial, await hashOf(one, serial));
    }
    host = one;
    return [{ path: "etc/fstab", mode: 0o644, content: `${ROOT_MOUNT}${MOUNTS}` }, ...PRIVATE_MOUNT];
  };
  ({ id } = await world.onboard(1));
  first = await world.ended(id, BOOT_MS);
}, BOOT_MS);
afterAll(() => world?.stop());

const diskPart = async () =>
  JSON.parse(await host.shell("cat /var/lib/muster/bootstrap/40-extra-disks.status")) as { message: string };
async function expectLive(): Promise<void> {
  const devices = await host.devices();
  const inUse = /in use:([^;]*)/.exec((await diskPart()).message)?.[1] ?? "";
  expect(inUse).toContain(`${devices.get("root")} (holds the root)`);
  for (const serial of ["mounted", "swap"]) expect(inUse).toContain(`${devices.get(serial)} (mounted or swap)`);
  const mounted = await host.shell("findmnt -no SOURCE /data; cat /data/ledger");
  expect(mounted).toBe(`${devices.get("mounted")}\n${LEDGER}`);
  expect(await host.shell("tail -n +2 /proc/swaps")).toContain(devices.get("swap"));
  const inside = await host.shell(
    "nsenter --mount --target $(systemctl show -P MainPID private-data) sh -c 'findmnt -no SOURCE /mnt; cat /mnt/ledger'",
  );
  expect(inside).toBe(`${devices.get("private")}p1\n${LEDGER}`);
  expect(await host.shell(`blkid -p -o value -s LABEL ${devices.get("root")}p1`)).toBe("boot");
}
const shares = async () =>
  (await host.shell("findmnt -rno SOURCE,TARGET -t ext4 | grep ' /share' | sort -k 2")).split("\n");

describe("the first system, with a profile that forbids erasing", () => {
  it("uses only the blank disk as a share, and names the disks with data", async () => {
    expect(first, `${first.error_message}\n${host.console().slice(-4000)}`).toMatchObject({
      status: "failed_manual_intervention",
      failure_class: "post_deploy_connectivity_failure",
      error_code: "host_bootstrap_failed",
    });
    nodeId = first.node_id ?? "";
    const devices = await host.devices();
    const leftAlone = /left alone:([^;]*)/.exec((await diskPart()).message)?.[1] ?? "";
    expect(leftAlone).toContain(`${devices.get("signed")} (ext4)`);
    expect(leftAlone).toMatch(new RegExp(`${devices.get("table")} [(]gpt`, "i"));
    expect(leftAlone).toContain(`${devices.get("luks")} (crypto_LUKS)`);
    expect(leftAlone).toMatch(new RegExp(`${devices.get("private")} [(]gpt`, "i"));
    expect(first.error_message).toContain("left alone:");
    expect(await shares()).toEqual([`${devices.get("blank")} /share1`]);
    await host.shell(`echo first >/share1/from && sync`);
  });

  it("wrote nothing to any other disk", async () => {
    await expectLive();
    for (const serial of QUIET_DISKS) expect(await hashOf(host, serial), serial).toBe(written.get(serial));
  });
});

describe("the second system, with a profile that allows erasing", () => {
  beforeAll(async () => {
    machineIds.push(await host.shell("echo first >/root/from; sync; cat /etc/machine-id"));
    old = await world.hosts.keepSystem(host);
    const { siteId, profileId } = world.site;
    const path = `/api/v1/admin/maas-sites/${siteId}/profiles/${profileId}`;
    await world.api.patch(Profile, path, { erase_unexpected_signatures: true });
    await world.verb(id, "restart-clean");
  }, BOOT_MS);

  it("is a new system of the same node", { timeout: BOOT_MS }, async () => {
    const end = await world.ended(id, BOOT_MS);
    expect(end.status, `${end.error_message}\n${host.console().slice(-4000)}`).toBe("completed");
    expect(end.node_id).toBe(nodeId);
    const now = await until(
      "the agent of the new system to report the baseline",
      async () => {
        const node = await world.api.node(nodeId);
        return node.schedulable ? node : undefined;
      },
      { timeoutMs: BOOT_MS, everyMs: 1_000 },
    );
    expect(now).toMatchObject({ status: "active", generation: 2 });
    expect(world.maas.sim.region.state.counters[end.maas_system_id ?? ""]).toMatchObject({ deploy: 2, boot: 2 });
    machineIds.push(await host.shell("cat /etc/machine-id"));
    expect(new Set(machineIds).size).toBe(2);
    expect(await host.shell("ls /root/from 2>&1 || true")).toContain("No such file");
  });

  it("uses the signed disks as shares, and wrote to no disk in use", async () => {
    const devices = await host.devices();
    const made = await shares();
    expect(made.map((line) => line.split(" ")[1])).toEqual(["/share1", "/share2", "/share3", "/share4"]);
    const expected = [...SIGNED, "blank"].map((serial) => devices.get(serial));
    expect(made.map((line) => line.split(" ")[0]).sort()).toEqual(expected.sort());
    expect(await host.shell("ls -A /share1 /share2 /share3 /share4 | grep -v -e ^/ -e ^lost+found -e ^$ || true")).toBe(
      "",
    );
    await expectLive();
    const inUse = (await diskPart()).message;
    expect(inUse).toContain(`${devices.get("private")} (held by a process)`);
    expect(await hashOf(host, "private")).toBe(written.get("private"));
    expect(await host.shell("systemctl --failed --no-legend")).toBe("");
  });
});

describe("the first system, started again", () => {
  it("is refused because of its certificate, and changes nothing", { timeout: BOOT_MS }, async () => {
    const before = await world.api.node(nodeId);
    old.start();
    await old.answers();
    const said = async (code: string) =>
      until(
        `the old agent to be told ${code}`,
        async () =>
          (await old.shell("journalctl -u muster-agent -o cat --no-pager")).includes(code) ? true : undefined,
        { timeoutMs: 600_000, everyMs: 2_000 },
      );
    expect(await old.shell("cat /root/from")).toBe("first");
    await said("certificate_rejected");
    expect(await old.shell("journalctl -u muster-agent -o cat --no-pager")).toContain("it was revoked");
    await old.powerCut();
    const after = await world.api.node(nodeId);
    expect(after).toMatchObject({ status: "active", schedulable: true, generation: 2 });
    expect(after.events).toEqual(before.events);
    expect(await host.shell("systemctl is-active muster-agent")).toBe("active");
  });
});
