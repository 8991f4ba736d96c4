import { afterAll, beforeAll, expect, it } from "vitest";
import { BootstrapCommand } from "../../shared/api/nodes.ts";
import { ReportTokenIssued } from "../../shared/api/readiness.ts";
import { PXE_NIC } from "../fakes/maas/state/site.ts";
import { until } from "../support/until.ts";
import { type BootWorld, startBootWorld } from "./boot-world.ts";
import { ContainerHosts } from "./container-hosts.ts";

/** Tests a host without an agent that Muster does not provision: the host's cloud-init reports the boot to the hub. */
let world: BootWorld;
beforeAll(async () => {
  world = await startBootWorld({ boxes: 1, lane: ContainerHosts.start });
});
afterAll(() => world?.stop());

it("phone_home and the reporting webhook of cloud-init become conditions of the node", async () => {
  const made = await world.api.call(BootstrapCommand, "POST", "/api/v1/admin/nodes", {
    onboarding_mode: "manual",
    hostname: "no-agent",
    sku_id: world.site.skuId,
    region_code: "demo-1",
  });
  const token = await world.api.call(ReportTokenIssued, "POST", `/api/v1/admin/nodes/${made.node_id}/report-token`);
  const ca = Buffer.from(/<<<([A-Za-z0-9+/=]+)/.exec(made.bootstrap_command)?.[1] ?? "", "base64").toString("utf8");
  expect(ca).toContain("BEGIN CERTIFICATE");
  const cloudConfig = {
    ca_certs: { trusted: [ca] },
    phone_home: { url: token.phone_home_url, post: ["instance_id", "hostname"], tries: 5 },
    reporting: { muster: { type: "webhook", endpoint: token.reporting_url, timeout: 5 } },
  };
  const network = { version: 2, ethernets: { [PXE_NIC]: { dhcp4: true } } };
  const seed = "var/lib/cloud/seed/nocloud";
  const host = world.hosts.of("no-agent");
  await host.install(
    [{ name: PXE_NIC, mac: "02:00:00:00:00:02", onBridge: true }],
    [
      { path: "etc/cloud/cloud.cfg.d/90-nocloud.cfg", mode: 0o644, content: "datasource_list: [ NoCloud ]\n" },
      { path: `${seed}/user-data`, mode: 0o600, content: `#cloud-config\n${JSON.stringify(cloudConfig)}\n` },
      { path: `${seed}/meta-data`, mode: 0o600, content: '{"instance-id": "i-1", "local-hostname": "no-agent"}\n' },
      { path: `${seed}/network-config`, mode: 0o600, content: `${JSON.stringify(network)}\n` },
    ],
  );
  await host.start();
  await host.bootEnded();
  const conditions = await until("both conditions", async () => {
    const node = await world.api.node(made.node_id);
    const told = node.conditions.filter((one) => ["os.booted", "cloud_init.done"].includes(one.type));
    return told.length === 2 ? told : undefined;
  });
  expect(Object.fromEntries(conditions.map(({ type, status, source }) => [type, `${status} by ${source}`]))).toEqual({
    "cloud_init.done": "True by cloud-init",
    "os.booted": "True by cloud-init",
  });
  // The node is still not enrolled, because a report token is not an enrollment token.
  expect((await world.api.node(made.node_id)).status).toBe("bootstrap_issued");
});
