import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { ROCE_NICS } from "../fakes/maas/state/site.ts";
import { DEPLOY_PASSWORD } from "../support/deploy-password.ts";
import { until } from "../support/until.ts";
import { type BootWorld, startBootWorld } from "./boot-world.ts";
import type { ContainerHost } from "./container-host.ts";
import { ContainerHosts } from "./container-hosts.ts";

/** Onboards one host up to `active`, with Debian's systemd and cloud-init and the user data that the hub rendered. */
let world: BootWorld;
let host: ContainerHost;
let onboarding: Awaited<ReturnType<BootWorld["ended"]>>;
beforeAll(async () => {
  world = await startBootWorld({ boxes: 1, lane: ContainerHosts.start });
  const begun = await world.onboard(1);
  host = world.hosts.of(begun.hostname);
  onboarding = await world.ended(begun.id);
  await host.bootEnded();
});
afterAll(() => world?.stop());

const counted = (systemId: string) => world.maas.sim.region.state.counters[systemId];
const systemId = (): string => onboarding.maas_system_id ?? "";

describe("a first boot through MAAS's datasource", () => {
  it("ends in an active node, after one commissioning and one deploy", async () => {
    expect(onboarding, await host.explain()).toMatchObject({ status: "completed" });
    const node = await world.api.node(onboarding.node_id ?? "");
    expect(node).toMatchObject({ hostname: host.name, status: "active" });
    expect(counted(systemId())).toMatchObject({ commission: 1, deploy: 1, boot: 1 });
  });

  it("is clean: cloud-init succeeded with MAAS's datasource, reported each stage, and no unit failed", async () => {
    expect(await host.shell("cloud-init status --long")).toMatch(/status: done.*DataSourceMAAS/s);
    expect(await host.shell("systemctl --failed --no-legend")).toBe("");
    const reports = world.maas.sim.region.bootReports.filter((one) => one.result !== null);
    expect(reports.map((one) => one.name)).toEqual(expect.arrayContaining(["init-network", "modules-final"]));
    expect(reports.filter((one) => one.result !== "SUCCESS")).toEqual([]);
  });

  it("ran every part, each with its own status", async () => {
    const statuses = (await host.shell("cat /var/lib/muster/bootstrap/*.status")).split("\n");
    const parts = statuses.map((line) => JSON.parse(line) as { part: string; owner: string; exit_code: number });
    expect(parts.map(({ part, owner, exit_code }) => [part, owner, exit_code])).toEqual([
      ["20-agent-bootstrap", "muster", 0],
      ["30-hardware-sync", "muster", 0],
      ["50-roce-routing", "muster", 0],
      ["60-deploy-user", "muster", 0],
    ]);
  });
});

describe("the agent", () => {
  it("was installed from the hub's package, and runs as its unit", async () => {
    expect(await host.shell("dpkg -s muster-agent")).toContain("Status: install ok installed");
    expect(await host.shell("systemctl is-active muster-agent; systemctl is-enabled muster-agent")).toBe(
      "active\nenabled",
    );
    // The image of the boot suite's hosts contains no documentation of Debian packages.
    expect(await host.shell("dpkg --verify muster-agent | grep -v ' /usr/share/doc' || true")).toBe("");
  });

  it("left its token only in the files that cloud-init keeps for root", async () => {
    const script = await host.shell("cat /var/lib/cloud/instance/scripts/20-agent-bootstrap.sh");
    const token = /ENROLLMENT_TOKEN='?([!-~]{32,128}?)'?$/m.exec(script)?.[1] ?? "";
    expect(token.length).toBeGreaterThanOrEqual(32);
    const { stdout } = await host.run("grep", "-rlsF", "-e", token, "/etc", "/var", "/run", "/root", "/home", "/tmp");
    for (const file of stdout.split("\n")) expect(file).toMatch(/^\/var\/lib\/cloud\/instances?\//);
    expect(await host.shell("find /var/lib/cloud/instances -name '*user-data*' -perm /077")).toBe("");
    expect(await host.shell("find /var/lib/cloud/instances/*/scripts -type f -perm /077")).toBe("");
  });
});

describe("MAAS's hardware sync", () => {
  it("is set up by its vendor-data, which the hub's user-data leaves intact", async () => {
    for (const unit of ["maas_hardware_sync.service", "maas_hardware_sync.timer"])
      expect(await host.read(`/lib/systemd/system/${unit}`)).toContain("[Unit]");
    expect(await host.shell("systemctl is-active maas_hardware_sync.timer")).toBe("active");
    expect(await host.shell("systemctl is-enabled maas_hardware_sync.timer")).toBe("enabled");
  });

  it("was seeded by the agent's task, and reaches the region with the machine's own token", async () => {
    const token = world.maas.sim.region.machine(systemId()).token;
    expect(await host.read("/etc/maas/maas-machine-creds.yml")).toContain(token?.token_key);
    expect(await host.shell("find /etc/maas -name '*.yml' -perm /077")).toBe("");
    const before = counted(systemId())?.sync ?? 0;
    expect(before).toBeGreaterThan(0);
    await host.shell("systemctl start maas_hardware_sync.service");
    await until("another sync", () => ((counted(systemId())?.sync ?? 0) > before ? true : undefined));
  });
});

describe("the host's setup", () => {
  it("has the deploy user, with the site's password and sudo", async () => {
    const hash = (await host.shell("getent shadow hpcadmin")).split(":")[1] ?? "";
    const { stdout } = await host.run(
      "python3",
      "-W",
      "ignore",
      "-c",
      "import crypt, sys; print(crypt.crypt(sys.argv[1], sys.argv[2]))",
      DEPLOY_PASSWORD,
      hash,
    );
    expect(stdout).toBe(hash);
    expect(await host.shell("sudo -l -U hpcadmin")).toContain("(ALL : ALL) ALL");
    // No file on the host may contain the deploy user's password in clear text.
    const { stdout: found } = await host.run("grep", "-rlsF", "-e", DEPLOY_PASSWORD, "/etc", "/var", "/run", "/root");
    expect(found).toBe("");
  });

  it("routes each RoCE address by its own NIC", async () => {
    expect(await host.shell("systemctl is-active muster-roce-routing")).toBe("active");
    const rules = await host.shell("ip -4 rule show");
    for (const [rail, nic] of ROCE_NICS.entries()) {
      expect(await host.shell(`ip -4 -o addr show dev ${nic}`)).toContain(` 172.30.${rail}.1/31 `);
      const table = new RegExp(`from 172[.]30[.]${rail}[.]1 lookup (\\d+)`).exec(rules)?.[1];
      expect(await host.shell(`ip -4 route show table ${table}`)).toContain(
        `default via 172.30.${rail}.0 dev ${nic} src 172.30.${rail}.1`,
      );
    }
  });
});

describe("a reboot", () => {
  it("returns as the same node without another enrollment", async () => {
    const nodeId = onboarding.node_id ?? "";
    const before = await enrollments(nodeId);
    await host.reboot();
    await host.bootEnded();
    const up = await host.shell("systemctl show -P ActiveEnterTimestamp muster-agent");
    await until("the hub hears of the agent again", async () => {
      const contact = (await world.api.node(nodeId)).last_agent_contact_at;
      return contact !== null && new Date(contact) > new Date(up) ? true : undefined;
    });
    expect(await enrollments(nodeId)).toBe(before);
    expect((await world.api.node(nodeId)).status).toBe("active");
    expect(await host.shell("systemctl --failed --no-legend")).toBe("");
  });
});

describe("a removal", () => {
  it("leaves only what the documents name on the host", async () => {
    const node = `/api/v1/admin/nodes/${onboarding.node_id}`;
    const ended = async (verb: string) => {
      const { decommission_id: id } = await world.api.call(Begun, "POST", `${node}/${verb}`, { reason: "boot suite" });
      return until(`the ${verb} to end`, async () => {
        const { status } = await world.api.call(Shown, "GET", `/api/v1/admin/decommissions/${id}`);
        return ["pending", "running", "compensating"].includes(status) ? undefined : status;
      });
    };
    expect(await ended("drain")).toBe("completed");
    expect(await ended("remove")).toBe("completed");
    await until("the package to be gone", async () =>
      (await host.run("dpkg", "-s", "muster-agent")).exitCode === 0 ? undefined : true,
    );
    const left = await host.shell(
      "find / -xdev \\( -path /proc -o -path /sys -o -path /var/log -o -path /var/lib/dpkg -o -path /var/lib/cloud \\) -prune -o -iname '*muster*' -print",
    );
    expect(left).toBe("");
    expect(await host.shell("getent passwd hpcadmin")).toContain("hpcadmin");
    // At a host's second boot, cloud-init runs once more and must not install anything of Muster a second time.
    await host.reboot();
    await host.bootEnded();
    expect(await host.shell("systemctl list-units 'muster*' --all --no-legend")).toBe("");
    expect((await host.run("dpkg", "-s", "muster-agent")).exitCode).not.toBe(0);
  });
});

const Begun = z.looseObject({ decommission_id: z.string() });
const Shown = z.looseObject({ status: z.string() });
const enrollments = async (nodeId: string) =>
  (await world.api.node(nodeId)).events.filter((event) => event.type === "enrolled").length;
