import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { TestAuthority } from "../fakes/hub/authority.ts";
import type { Machine } from "../fakes/maas/state/model.ts";
import { until } from "../support/until.ts";
import { type BootWorld, startBootWorld } from "./boot-world.ts";
import type { ContainerHost } from "./container-host.ts";
import { ContainerHosts, type Prepare } from "./container-hosts.ts";
import { editUserData } from "./edit-user-data.ts";

/** The hub reports a different error for each failure of a host's first boot, and the tests repair each failure without a new deploy. */
let world: BootWorld;
let files: Server;
let filesUrl: string;
const served = new Map<string, Buffer>();
const prepares = new Map<string, Prepare>();
let box = 0;

beforeAll(async () => {
  world = await startBootWorld({ boxes: 9, lane: ContainerHosts.start });
  world.hosts.prepare = async (host, machine) => prepares.get(host.name)?.(host, machine);
  files = createServer((request, response) => {
    const body = served.get(request.url ?? "");
    response.writeHead(body === undefined ? 404 : 200).end(body);
  });
  await new Promise<void>((resolve) => files.listen(0, world.hosts.listen, resolve));
  const address = files.address();
  if (address === null || typeof address === "string") throw new Error("the file server has no port");
  filesUrl = `http://${world.hosts.listen}:${address.port}`;
});
afterAll(async () => {
  files?.close();
  await world?.stop();
});

/** Polls with a long deadline, because a busy computer needs minutes to boot a host. */
const soon = <T>(what: string, look: () => Promise<T | undefined> | T | undefined): Promise<T> =>
  until(what, look, { timeoutMs: 240_000, everyMs: 200, signal: world.hosts.failed });

const QUICK = {
  MUSTER_DOWNLOAD_ATTEMPTS: "2",
  MUSTER_DOWNLOAD_PAUSE_SECONDS: "1",
  MUSTER_BOOTSTRAP_PAUSE_SECONDS: "2",
};
interface Case {
  readonly profile?: Readonly<Record<string, unknown>>;
  readonly environment?: Readonly<Record<string, string>>;
  readonly prepare?: (host: ContainerHost, machine: Machine) => Promise<void> | void;
}
/** Onboards the next host of the simulated region, after `prepare` has broken something on the host. */
async function onboard({ profile = {}, environment = {}, prepare }: Case) {
  box += 1;
  // The key of `prepares` is the hostname, so that a slow host of an earlier test does not get this test's `prepare`.
  prepares.set(world.boxes[box - 1]?.hostname ?? "", async (host, machine) => {
    await host.setEnvironment({ ...QUICK, ...environment });
    await prepare?.(host, machine);
  });
  const { id, hostname } = await world.onboard(box, { ...profile });
  return { id, host: world.hosts.of(hostname) };
}
/** Makes the first boot run a command before cloud-init's last stage. */
const beforeFinal = (host: ContainerHost, command: string) =>
  host.put({
    path: "etc/systemd/system/cloud-final.service.d/before.conf",
    mode: 0o644,
    content: `[Service]\nExecStartPre=/bin/bash -c "${command}"\n`,
  });
const serve = (name: string, text: string): string => {
  served.set(`/${name}`, Buffer.from(text));
  return `${filesUrl}/${name}#sha256=${createHash("sha256").update(text).digest("hex")}`;
};
const statusOf = async (host: ContainerHost, part: string) =>
  JSON.parse((await host.read(`/var/lib/muster/bootstrap/${part}.status`)) ?? "null") as {
    exit_code: number | null;
    message: string;
  } | null;
async function expectActive(id: string): Promise<void> {
  const end = await world.ended(id);
  // If a repaired host connects before an operator resumes its onboarding, the hub adopts the host by itself.
  expect(["completed", "reconciled"], `${end.error_message}`).toContain(end.status);
  expect(world.maas.sim.region.state.counters[end.maas_system_id ?? ""]).toMatchObject({ deploy: 1, boot: 1 });
  expect((await world.api.node(end.node_id ?? "")).status).toBe("active");
}

describe("a part that fails", () => {
  it("is reported as the site's failure for the site's bundle, and the agent still reports it", async () => {
    const ref = serve("base.sh", "#!/bin/sh\n[ -e /etc/site-is-ready ] || { echo not ready >&2; exit 7; }\n");
    const { id, host } = await onboard({ profile: { site_bootstrap_bundle_ref: ref } });
    const failed = await world.ended(id);
    expect(failed).toMatchObject({
      status: "failed_manual_intervention",
      failure_class: "post_deploy_connectivity_failure",
      error_code: "site_bootstrap_failed",
    });
    expect(failed.error_message).toContain("10-site-bootstrap ended with 7");
    expect((await statusOf(host, "20-agent-bootstrap"))?.exit_code).toBe(0);
    await host.shell("touch /etc/site-is-ready && systemctl restart muster-bootstrap");
    await soon("the bundle to succeed", async () =>
      (await statusOf(host, "10-site-bootstrap"))?.exit_code === 0 ? true : undefined,
    );
    await world.verb(id, "resume");
    await expectActive(id);
  });

  it("is reported as Muster's failure for a disk with data that the profile does not allow to erase", async () => {
    const folder = mkdtempSync(join(tmpdir(), "muster-boot-disks-"));
    const disks: string[] = [];
    try {
      for (const name of ["blank", "used"]) {
        writeFileSync(join(folder, name), "");
        truncateSync(join(folder, name), 64 * 2 ** 20);
        disks.push((await execa("losetup", ["--find", "--show", join(folder, name)])).stdout);
      }
      const [blank = "", used = ""] = disks;
      await execa("mkfs.ext4", ["-q", "-L", "customer-data", used]);
      const { id, host } = await onboard({
        profile: { initialize_extra_disks: true },
        environment: { MUSTER_DISKS: disks.join(" ") },
        prepare: async (one) => {
          for (const disk of disks) await one.addDisk(disk);
        },
      });
      const failed = await world.ended(id);
      expect(failed).toMatchObject({
        status: "failed_manual_intervention",
        failure_class: "post_deploy_connectivity_failure",
        error_code: "host_bootstrap_failed",
      });
      expect(failed.error_message).toContain(`not blank, so left alone: ${used} (ext4)`);
      expect((await execa("blkid", ["-p", "-o", "value", "-s", "LABEL", used])).stdout).toBe("customer-data");
      expect(await host.shell("findmnt -no SOURCE /share1")).toBe(blank);
      expect(await host.read("/etc/fstab")).toMatch(/^UUID=[0-9a-f-]{36} \/share1 ext4 /m);
      await host.shell(`wipefs -aq ${used} && systemctl restart muster-bootstrap`);
      await soon("the other share", async () =>
        (await host.run("findmnt", "-no", "SOURCE", "/share2")).stdout === used ? true : undefined,
      );
      await world.verb(id, "resume");
      await expectActive(id);
      await host.remove();
    } finally {
      for (const disk of disks) await execa("losetup", ["-d", disk], { reject: false });
      rmSync(folder, { recursive: true, force: true });
    }
  });
});

describe("an agent that cannot come up", () => {
  it("is reported as not connected while it cannot reach the hub, and connects once the hub is reachable", async () => {
    const block = `iptables -A OUTPUT -d ${world.hosts.listen} -p tcp --dport ${world.agentPort} -j REJECT`;
    const { id, host } = await onboard({
      profile: { hardware_sync_seed_timeout_seconds: 30 },
      prepare: (one) => beforeFinal(one, block),
    });
    const failed = await soon("the agent's part to fail", async () => {
      const status = await statusOf(host, "20-agent-bootstrap");
      return status?.exit_code ? status : undefined;
    });
    expect(failed.message).toContain("could not be fetched in 2 attempts (curl status 7");
    await soon(
      "MAAS to be told",
      () =>
        world.maas.sim.region.bootReports.some((one) => one.name === "modules-final" && one.result === "FAIL") ||
        undefined,
    );
    const gaveUp = await world.ended(id);
    expect(gaveUp).toMatchObject({
      failure_class: "post_deploy_connectivity_failure",
      error_code: "agent_not_connected",
    });
    expect(gaveUp.error_message).toContain("MAAS was told that its first boot failed: 'cloudinit'");
    expect(gaveUp.error_message).toContain("no connection from the host's addresses was seen (10.231.");
    await host.shell("iptables -F OUTPUT");
    await soon("the agent to come after all", async () =>
      (await world.api.node(gaveUp.node_id ?? "")).status === "active" ? true : undefined,
    );
  });

  it("connects after its expired token was extended", async () => {
    const { id } = await onboard({
      // The enrollment token and the deploy have 60 seconds each, enough for a boot on a busy computer.
      profile: { enrollment_token_ttl_seconds: 60, deploy_timeout_seconds: 60 },
      prepare: (one) => beforeFinal(one, "sleep 62"),
    });
    await expectActive(id);
    const told = (await world.api.onboarding(id)).events.map((event) => event.message).join();
    expect(told).toContain("its token was extended");
  });

  it("is reported by hub and host as having another CA, and connects with the right CA", async () => {
    const other = (await TestAuthority.make()).caPem.trim();
    let right = "";
    const { id, host } = await onboard({
      profile: { hardware_sync_seed_timeout_seconds: 60 },
      prepare: (_host, machine) =>
        editUserData(machine, "20-agent-bootstrap.sh", (text) =>
          text.replace(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/, (found) => {
            right = found;
            return other;
          }),
        ),
    });
    const failed = await world.ended(id);
    expect(failed).toMatchObject({
      status: "failed_manual_intervention",
      failure_class: "agent_enrollment_failure",
      error_code: "agent_distrusts_hub",
    });
    expect(failed.error_message).toMatch(
      /does not trust this hub: 10\.231\.\d+\.\d+ refused the hub's certificate \(unknown CA\) \d+ times, last at /,
    );
    await soon(
      "the host's own word",
      async () => (await statusOf(host, "20-agent-bootstrap"))?.message.includes("given another CA") || undefined,
    );
    const script = "/var/lib/cloud/instance/scripts/20-agent-bootstrap.sh";
    const text = (await host.read(script)) ?? "";
    await host.put({ path: script.slice(1), mode: 0o700, content: text.replace(other, () => right) });
    await world.verb(id, "resume");
    await expectActive(id);
  });

  it("is not installed from a package whose bytes differ from the hub's checksum", async () => {
    served.set("/agent.deb", Buffer.from("!<arch>\nnot what was promised"));
    const { id, host } = await onboard({
      profile: { hardware_sync_seed_timeout_seconds: 60 },
      prepare: (_host, machine) =>
        editUserData(machine, "20-agent-bootstrap.sh", (text) =>
          text
            .replace(/PACKAGE_URL='[^']*'/, `PACKAGE_URL='${filesUrl}/agent.deb'`)
            .replace("PACKAGE_FROM_HUB='true'", "PACKAGE_FROM_HUB='false'"),
        ),
    });
    const refused = await soon("the package to be refused", async () => {
      const status = await statusOf(host, "20-agent-bootstrap");
      return status?.exit_code ? status : undefined;
    });
    expect(refused.message).toMatch(/the agent package has SHA-256 .* nothing of it was run or installed/);
    expect((await host.run("dpkg", "-s", "muster-agent")).exitCode).not.toBe(0);
    await world.verb(id, "cancel");
    await world.ended(id);
  });

  it("is installed once the disk has room for it", async () => {
    const { id, host } = await onboard({
      prepare: (one) => beforeFinal(one, "mkdir -p /usr/lib/muster && mount -t tmpfs -o size=8m none /usr/lib/muster"),
    });
    const failed = await soon("the installation to fail", async () => {
      const status = await statusOf(host, "20-agent-bootstrap");
      return status?.exit_code ? status : undefined;
    });
    expect(failed.message).toContain("dpkg could not install the agent package");
    expect(await host.shell("cat /var/log/cloud-init-output.log")).toContain("No space left on device");
    await host.shell("umount /usr/lib/muster");
    await expectActive(id);
  });
});

describe("a power cut", () => {
  it("during the first boot: the next boot completes it", async () => {
    const ref = serve("slow.sh", "#!/bin/sh\n[ -e /var/tmp/once ] && exit 0\ntouch /var/tmp/once\nsync\nsleep 600\n");
    const { id, host } = await onboard({ profile: { site_bootstrap_bundle_ref: ref } });
    await soon("the bundle to run", async () => ((await host.read("/var/tmp/once")) === "" ? true : undefined));
    await host.powerCut();
    expect(await host.isRunning()).toBe(false);
    await host.start();
    await expectActive(id);
    expect(await host.shell("systemctl --failed --no-legend")).toBe("");
  });

  it("during a task: the agent reconnects and completes the task", async () => {
    const { id, host } = await onboard({});
    await soon("the reseed", async () =>
      (await world.api.onboarding(id)).current_stage === "ensure_hardware_sync_configured" &&
      (await host.run("systemctl", "is-active", "muster-agent")).stdout === "active"
        ? true
        : undefined,
    );
    await host.powerCut();
    await host.start();
    await expectActive(id);
  });
});
