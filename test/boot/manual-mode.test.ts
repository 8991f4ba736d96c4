import { readdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { AdoptionCommands, AdoptionCreated } from "../../shared/api/adoptions.ts";
import { BootstrapCommand } from "../../shared/api/nodes.ts";
import { PXE_NIC } from "../fakes/maas/state/site.ts";
import { deployedMachine } from "../support/deployed-machine.ts";
import { until } from "../support/until.ts";
import { type BootWorld, startBootWorld } from "./boot-world.ts";
import { ContainerHosts } from "./container-hosts.ts";

let world: BootWorld;
beforeAll(async () => {
  world = await startBootWorld({ boxes: 1, lane: ContainerHosts.start });
});
const nodeIs = (id: string, status: string) =>
  until(`the node to be ${status}`, async () => ((await world.api.node(id)).status === status ? true : undefined));
afterAll(() => world?.stop());

const create = (hostname: string) =>
  world.api.call(BootstrapCommand, "POST", "/api/v1/admin/nodes", {
    onboarding_mode: "manual",
    hostname,
    sku_id: world.site.skuId,
    region_code: "demo-1",
  });

it("the manual command brings a host into service, and explains each failure", async () => {
  const host = await world.hosts.bare("by-hand");
  const made = await create("by-hand");
  const asNobody = await host.run("runuser", "-u", "nobody", "--", "bash", "-c", made.bootstrap_command);
  expect(asNobody.exitCode).not.toBe(0);
  const unreachable = made.bootstrap_command.replace(`:${world.agentPort}/`, ":9/");
  const cut = await host.run("bash", "-c", unreachable);
  expect([cut.exitCode === 0, cut.stderr]).toEqual([false, expect.stringContaining("Failed to connect")]);
  const other = made.bootstrap_command.replace(/<<<[A-Za-z0-9+/=]+/, "<<<bm8K");
  expect((await host.run("bash", "-c", other)).exitCode).not.toBe(0);
  expect((await host.run("dpkg", "-s", "muster-agent")).exitCode).not.toBe(0);

  const done = await host.run("bash", "-c", made.bootstrap_command);
  expect(done.exitCode, done.stdout + done.stderr).toBe(0);
  expect(done.stdout).toContain(`enrolled as ${made.node_id}`);
  await nodeIs(made.node_id, "active");
  const node = await until(
    "the node to take work, after the agent has reported the baseline",
    async () => {
      const now = await world.api.node(made.node_id);
      return now.schedulable ? now : undefined;
    },
    { timeoutMs: 300_000, everyMs: 500 },
  );
  expect(node).toMatchObject({ onboarding_mode: "manual", site_id: null, unschedulable_reasons: [] });

  const again = await host.run("bash", "-c", made.bootstrap_command);
  expect(again.exitCode).not.toBe(0);
  expect(again.stderr).toContain("token_used");
  const second = await create("by-hand-2");
  const taken = await host.run("bash", "-c", second.bootstrap_command);
  expect(taken.exitCode).not.toBe(0);
  expect(taken.stdout + taken.stderr).toContain("enrolled as another node already");
  expect((await world.api.node(made.node_id)).status).toBe("active");
});

it("an upgrade of the package keeps the identity, and a purge leaves only what the documents name", async () => {
  const host = world.hosts.of("by-hand");
  const identity = await host.read("/var/lib/muster/agent/identity.json");
  const nodeId = (JSON.parse(identity ?? "{}") as { node_id: string }).node_id;
  const [file = ""] = readdirSync(join(world.folder, "agent-packages")).filter((name) => name.endsWith(".deb"));
  await host.copy(join(world.folder, "agent-packages", file), "tmp/agent.deb");
  const started = await host.shell("systemctl show -P MainPID muster-agent");
  await host.shell("dpkg -i /tmp/agent.deb && rm /tmp/agent.deb");
  expect(await host.read("/var/lib/muster/agent/identity.json")).toBe(identity);
  expect(await host.shell("systemctl show -P MainPID muster-agent")).not.toBe(started);
  const upgraded = new Date();
  await until("the hub hears of the agent again", async () => {
    const contact = (await world.api.node(nodeId)).last_agent_contact_at;
    return contact !== null && new Date(contact) > upgraded ? true : undefined;
  });
  await host.shell("dpkg --purge muster-agent");
  const left = await host.shell(
    "find / -xdev \\( -path /proc -o -path /sys -o -path /var/log -o -path /var/lib/dpkg \\) -prune -o -iname '*muster*' -print",
  );
  expect(left.split("\n").filter((path) => path !== "")).toEqual(["/root/muster-bootstrap.sh"]);
  expect(await host.shell("systemctl list-units 'muster*' --all --no-legend")).toBe("");
});

it("a host that MAAS deployed without Muster comes into service by its adoption's command, and only the right host", async () => {
  const [right, wrong] = await Promise.all([world.hosts.bare("running"), world.hosts.bare("stranger")]);
  const mac = (await right.shell(`cat /sys/class/net/${PXE_NIC}/address`)).trim();
  const uuid = (await right.shell("cat /sys/class/dmi/id/product_uuid 2>/dev/null || true")).trim();
  deployedMachine(world.maas.sim.region, { hostname: "running", n: 1, mac }, (machine) => {
    if (uuid !== "") machine.hardwareUuid = uuid;
  });
  const site = `/api/v1/admin/maas-sites/${world.site.siteId}`;
  const request = { sku_id: world.site.skuId, hostnames: ["running"] };
  const adopted = await until("the hub to have read the machine", async () => {
    const { machines } = await world.api.call(AdoptionCreated, "POST", `${site}/adoptions`, request);
    return machines[0]?.node_id ?? undefined;
  });
  await nodeIs(adopted, "bootstrap_issued");
  const written = writes();
  const { commands } = await world.api.call(AdoptionCommands, "POST", `${site}/adoption-commands`, {});
  expect(commands.map(({ hostname }) => hostname)).toEqual(["running"]);
  const command = commands[0]?.bootstrap_command ?? "";

  const refused = await wrong.run("bash", "-c", command);
  expect(refused.exitCode, refused.stdout).not.toBe(0);
  expect((await world.api.node(adopted)).status).toBe("bootstrap_issued");
  expect(writes(), "requests that change MAAS before the agent has enrolled").toEqual(written);
  const done = await right.run("bash", "-c", command);
  expect(done.exitCode, done.stdout + done.stderr).toBe(0);
  await nodeIs(adopted, "active");
  expect(await world.api.node(adopted)).toMatchObject({ hostname: "running", schedulable: false });
});

/** How often each request that may change something has reached the simulated MAAS. */
const writes = (): Record<string, number> =>
  Object.fromEntries(Object.entries(world.maas.sim.region.state.requests).filter(([what]) => !what.startsWith("GET ")));
