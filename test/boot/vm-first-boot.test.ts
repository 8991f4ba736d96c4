import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { Site } from "../../shared/api/sites.ts";
import { until } from "../support/until.ts";
import { type BootWorld, startBootWorld } from "./boot-world.ts";
import { type FileServer, startFileServer } from "./file-server.ts";
import { GUEST_GATEWAY, ROOT_MOUNT, type VmHost } from "./vm-host.ts";
import { VmHosts } from "./vm-hosts.ts";

/** The test's inputs contain text that would create the file `PWNED` if a shell, YAML or a systemd unit executed it. */
const PWNED = "/run/pwned";
/** A host name that YAML could read as a hexadecimal number, with the maximum length of a DNS label. */
const HOSTNAME = `0x${"f".repeat(61)}`;
const DEPLOY_USER = `_-0${"-_".repeat(14)}-`;
const PASSWORD = ` '"$(touch ${PWNED})\`touch ${PWNED}\`$HOME\\ : # & ! | ; < > * ? [ ] { } % ~ ä€😀 - `;
const BUNDLE = `it's;$(touch$\{IFS}${PWNED})\`touch$\{IFS}${PWNED}\`|&"<>*[]{}!~^,:%5c\\?x=$HOME&y='"\\`;

/** Tests what a test in a container cannot: a kernel, disks that the first boot finds, a power cut and a wrong clock. */
const BOOT_MS = 3_600_000;
let files: FileServer;
let world: BootWorld<VmHosts>;
let host: VmHost;
let onboarding: Awaited<ReturnType<BootWorld["ended"]>>;
const figures: string[] = [];
beforeAll(async () => {
  files = await startFileServer("127.0.0.1", GUEST_GATEWAY);
  const bundle = files.serve(BUNDLE, "#!/bin/sh\necho done >/etc/site-bundle\n");
  world = await startBootWorld({
    boxes: 1,
    lane: VmHosts.start,
    profile: {
      enable_phase2_roce: false,
      initialize_extra_disks: true,
      site_bootstrap_bundle_ref: bundle,
    },
  });
  const { api, site, boxes } = world;
  const path = `/api/v1/admin/maas-sites/${site.siteId}`;
  await api.patch(Site, path, { deploy_user: DEPLOY_USER });
  await api.call(z.unknown(), "POST", `${path}/credentials`, {
    deploy_password: PASSWORD,
  });
  const selectors = {
    site_id: site.siteId,
    profile_id: site.profileId,
    sku_id: site.skuId,
  };
  const { onboarding_id: id } = await api.onboard({
    ...selectors,
    ...boxes[0],
    hostname: HOSTNAME,
  });
  onboarding = await world.ended(id, BOOT_MS);
  host = world.hosts.of(world.maas.sim.region.machine(onboarding.maas_system_id ?? ""));
}, BOOT_MS);
afterAll(async () => {
  if (figures.length > 0) process.stdout.write(`\n${figures.join("\n")}\n`);
  await world?.stop();
  await files?.stop();
});

const node = () => world.api.node(onboarding.node_id ?? "");
const conditionOf = async (type: string) => (await node()).conditions.find((one) => one.type === type);
const backAfter = (moment: Date) =>
  until(
    "the hub hears of the agent again",
    async () => {
      const contact = (await node()).last_agent_contact_at;
      return contact !== null && new Date(contact) > moment ? true : undefined;
    },
    { timeoutMs: 240_000, everyMs: 500 },
  );

describe("a machine with disks of its own", () => {
  it("comes into service", async () => {
    expect(onboarding.status, `${onboarding.error_message}\n${host?.console().slice(-4000)}`).toBe("completed");
    expect((await node()).status).toBe("active");
    const active = (await node()).events.find((event) => event.to_status === "active");
    const seconds = (new Date(active?.occurred_at ?? 0).getTime() - host.startedAt.getTime()) / 1000;
    figures.push(`switched on to active: ${seconds.toFixed(1)} s`);
    const status = JSON.parse(await host.shell("cat /var/lib/muster/bootstrap/20-agent-bootstrap.status")) as {
      started_at: string;
      ended_at: string;
    };
    const part = (new Date(status.ended_at).getTime() - new Date(status.started_at).getTime()) / 1000;
    figures.push(`of that, fetching, installing and starting the agent: ${part.toFixed(0)} s`);
  });

  it("mounts each free disk as a share by UUID, and leaves the root's disk as it was", async () => {
    const devices = await host.devices();
    expect(await host.shell("findmnt -no SOURCE /")).toBe(`${devices.get("root")}p2`);
    expect(await host.shell(`blkid -p -o value -s LABEL ${devices.get("root")}p1`)).toBe("boot");
    const shares = (await host.shell("findmnt -rno SOURCE,TARGET -t ext4 | grep ' /share' | sort -k 2")).split("\n");
    expect(shares.map((line) => line.split(" ")[1])).toEqual(["/share1", "/share2"]);
    expect(shares.map((line) => line.split(" ")[0]).sort()).toEqual(
      [devices.get("data1"), devices.get("data2")].sort(),
    );
    const fstab = await host.shell("cat /etc/fstab");
    expect(fstab).toContain(ROOT_MOUNT.trim());
    expect(fstab.match(/^UUID=[0-9a-f-]{36} \/share[12] ext4 .*nofail/gm)).toHaveLength(2);
    expect(await host.shell("systemctl --failed --no-legend")).toBe("");
  });

  it("has exactly the name, user and password that it was given, and executed nothing in them", async () => {
    const given = (text: string) => `"$(printf %s ${Buffer.from(text).toString("base64")} | base64 -d)"`;
    expect(await host.shell("hostname")).toBe(HOSTNAME);
    expect((await node()).hostname).toBe(HOSTNAME);
    // The test logs in to the host through PAM, with su and sudo, as a person does.
    const asked = `printf '%s\\n' ${given(PASSWORD)}`;
    const user = given(DEPLOY_USER);
    expect(await host.shell(`${asked} | runuser -u nobody -- su -c 'id -un' -- ${user} 2>/dev/null`)).toBe(DEPLOY_USER);
    expect(await host.shell(`${asked} | runuser -u ${user} -- sudo -S -k -p '' id -u 2>/dev/null`)).toBe("0");
    await expect(
      host.shell(`printf 'x%s\\n' ${given(PASSWORD)} | runuser -u nobody -- su -c id -- ${user}`),
    ).rejects.toThrow(/Authentication failure/);
    expect(files.asked).toEqual([`/${BUNDLE}`]);
    expect(await host.shell("cat /etc/site-bundle")).toBe("done");
    const statuses = (await host.shell("cat /var/lib/muster/bootstrap/*.status")).split("\n");
    expect(statuses.map((line) => (JSON.parse(line) as { exit_code: number }).exit_code)).toEqual(
      statuses.map(() => 0),
    );
    expect(await host.shell(`ls ${PWNED} 2>&1 || true`)).toContain("No such file");
  });

  it("uses little memory and processor time when idle", async () => {
    const measure = async (pid: string) => {
      const ticks = async () => Number(await host.shell(`awk '{print $14 + $15}' /proc/${pid}/stat`));
      const before = await ticks();
      await host.shell("sleep 60", 120_000);
      const cpuMs = ((await ticks()) - before) * 10;
      const kib = await host.shell(`awk '/^(VmRSS|RssAnon)/ {print $2}' /proc/${pid}/status`);
      const [rss, anonymous] = kib.split("\n").map((one) => (Number(one) / 1024).toFixed(1));
      return `${rss} MiB resident, ${anonymous} MiB of it its own, ${cpuMs} ms of processor time in 60 s`;
    };
    // For comparison, the test also measures Node.js with one WebSocket and without the agent's program.
    const bare = (unit: string, program: string) =>
      host.shell(
        `systemd-run --quiet --unit=${unit} --working-directory=/usr/lib/muster/agent /usr/lib/muster/agent/runtime/node -e '${program}' && sleep 5`,
      );
    await bare("bare-server", 'new (require("ws").WebSocketServer)({port: 9})');
    await bare("bare-client", 'new (require("ws"))("ws://127.0.0.1:9")');
    const agent = await host.shell("systemctl show -P MainPID muster-agent");
    figures.push(`agent, idle: ${await measure(agent)}`);
    const client = await host.shell("systemctl show -P MainPID bare-client");
    figures.push(`bare Node.js with one WebSocket: ${await measure(client)}`);
    expect(Number(agent)).toBeGreaterThan(1);
    expect(Number(client)).toBeGreaterThan(1);
  });
});

describe("after a power cut", () => {
  it("returns by itself with its shares, as the same node", async () => {
    const enrolled = async () => (await node()).events.filter((event) => event.type === "enrolled").length;
    const before = await enrolled();
    const bootId = await host.shell("cat /proc/sys/kernel/random/boot_id");
    await host.powerCut();
    const off = new Date();
    host.start();
    await backAfter(off);
    expect(await host.shell("cat /proc/sys/kernel/random/boot_id")).not.toBe(bootId);
    expect(await host.shell("findmnt -rno TARGET -t ext4 | grep ^/share | sort")).toBe("/share1\n/share2");
    expect(await enrolled()).toBe(before);
    await until("the node is active", async () => ((await node()).status === "active" ? true : undefined));
  });
});

describe("while the clock is an hour ahead", () => {
  it("reports the wrong clock, and becomes healthy once the clock is set", async () => {
    await host.powerCut();
    const off = new Date();
    host.start({ clockOffSeconds: 3600 });
    await backAfter(off);
    const skewed = await until("the agent to tell", async () => {
      const condition = await conditionOf("agent.healthy");
      return condition?.status === "False" ? condition : undefined;
    });
    expect(skewed).toMatchObject({ reason: "ClockSkewed" });
    expect(skewed.message).toMatch(/clock is 3[56]\d\d s ahead of the hub's/);
    expect((await node()).schedulable).toBe(false);
    await host.shell(`date -u -s @${Math.floor(Date.now() / 1000)}`);
    await until(
      "the agent to be well",
      async () => {
        const condition = await conditionOf("agent.healthy");
        return condition?.status === "True" ? true : undefined;
      },
      { timeoutMs: 240_000 },
    );
  });
});
