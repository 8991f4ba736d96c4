import { afterAll, beforeAll, expect, it } from "vitest";
import { endDeployment } from "../fakes/maas/engine/deploy.ts";
import { type BootWorld, startBootWorld } from "./boot-world.ts";
import { ContainerHosts } from "./container-hosts.ts";

/** Boots a host with user data that was rendered for MAAS, but that comes from a NoCloud seed on the disk. */
let world: BootWorld;
beforeAll(async () => {
  world = await startBootWorld({ boxes: 1, profile: { require_hw_sync: false }, lane: ContainerHosts.start });
});
afterAll(() => world?.stop());

it("user-data rendered for MAAS boots a host from NoCloud's seed", async () => {
  const { region } = world.maas.sim;
  world.hosts.prepare = async (host, machine) => {
    const seed = "var/lib/cloud/seed/nocloud";
    const userData = Buffer.from(machine.userData ?? "", "base64").toString("utf8");
    const metaData = JSON.stringify({ "instance-id": machine.systemId, "local-hostname": machine.hostname });
    await host.put({ path: `${seed}/user-data`, mode: 0o600, content: userData });
    await host.put({ path: `${seed}/meta-data`, mode: 0o600, content: `${metaData}\n` });
    // Replaces the file in which cloud-init reads that its datasource is MAAS, by a file that names the datasource NoCloud.
    const datasource = "etc/cloud/cloud.cfg.d/90_dpkg_maas.cfg";
    await host.put({ path: datasource, mode: 0o600, content: "datasource_list: [ NoCloud ]\n" });
    // The test itself ends the deployment in MAAS, because no host fetches user data from MAAS.
    endDeployment(region, machine);
  };
  const { id, hostname } = await world.onboard(1);
  const host = world.hosts.of(hostname);
  const end = await world.ended(id);
  expect(end, await host.explain()).toMatchObject({ status: "completed" });
  expect((await world.api.node(end.node_id ?? "")).status).toBe("active");
  expect(await host.bootEnded()).toBe("done");
  expect(await host.shell("cloud-init status --long")).toContain("DataSourceNoCloud");
  expect(region.bootReports).toEqual([]);
  const statuses = (await host.shell("cat /var/lib/muster/bootstrap/*.status")).split("\n");
  const parts = statuses.map((line) => JSON.parse(line) as { part: string; exit_code: number });
  expect(parts.map(({ part, exit_code }) => [part, exit_code])).toEqual([
    ["20-agent-bootstrap", 0],
    ["50-roce-routing", 0],
    ["60-deploy-user", 0],
  ]);
  expect(await host.shell("systemctl --failed --no-legend")).toBe("");
});
