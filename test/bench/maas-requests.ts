import { join } from "node:path";
import { startRig } from "../support/rig.ts";
import { demoHosts, seedSite } from "../support/seed-site.ts";
import { readCounters, totalRequests } from "../support/simulator-counters.ts";
import { until } from "../support/until.ts";
import type { Figure } from "./figure.ts";

const HOSTS = 8;
/** The watcher polls MAAS at the hub's default interval, so that the measured number of requests holds for a real site. */
const WATCH_INTERVAL_MS = 5_000;

export async function measureMaasRequests(stateDir: string): Promise<Figure[]> {
  const whole = await perOnboardedHost(join(stateDir, "whole"));
  return [
    {
      name: "MAAS requests per onboarded host",
      value: whole,
      unit: "requests",
      note: `${HOSTS} hosts at once, 16 stages each, watcher and probe included, speed 20`,
    },
  ];
}

async function perOnboardedHost(stateDir: string): Promise<number> {
  const rig = await startRig({
    stateDir,
    machines: HOSTS,
    speed: 20,
    hubEnv: { MUSTER_WATCH_INTERVAL_MS: String(WATCH_INTERVAL_MS) },
  });
  try {
    const hosts = demoHosts(HOSTS);
    const site = await seedSite(rig.api, rig.maas, hosts);
    await rig.api.onboardBatch({ site_id: site.siteId, profile_id: site.profileId, sku_id: site.skuId, nodes: hosts });
    await until(
      "all hosts are active",
      async () =>
        (await rig.api.nodes()).filter((node) => node.status === "active").length === HOSTS ? true : undefined,
      { timeoutMs: 300_000, everyMs: 500 },
    );
    return totalRequests(await readCounters(rig.maas.control)) / HOSTS;
  } finally {
    await rig.stop();
  }
}
