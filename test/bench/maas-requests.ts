import { join } from "node:path";
import { startRig } from "../support/rig.ts";
import { demoHosts, seedSite } from "../support/seed-site.ts";
import { readCounters, totalRequests } from "../support/simulator-counters.ts";
import { until } from "../support/until.ts";
import type { Figure } from "./figure.ts";

const HOSTS = 8;
const WINDOW_SECONDS = 20;
const SETTLE_SECONDS = 12;
/** The hub's own default, so that the figure is a real site's. */
const WATCH_INTERVAL_MS = 5_000;

/** Requests that a whole onboarding costs MAAS, and what a minute of waiting costs with one host and with eight. */
export async function measureMaasRequests(stateDir: string): Promise<Figure[]> {
  const whole = await perOnboardedHost(join(stateDir, "whole"));
  const one = await perMinuteOfWaiting(join(stateDir, "one"), 1);
  const eight = await perMinuteOfWaiting(join(stateDir, "eight"), HOSTS);
  return [
    {
      name: "MAAS requests per onboarded host",
      value: whole,
      unit: "requests",
      note: `${HOSTS} hosts at once, 16 stages each, watcher and probe included, speed 20`,
    },
    {
      name: "MAAS requests per minute, 1 host waiting",
      value: one,
      unit: "requests/min",
      note: `watch interval ${WATCH_INTERVAL_MS} ms`,
    },
    {
      name: `MAAS requests per minute, ${HOSTS} hosts waiting`,
      value: eight,
      unit: "requests/min",
      note: `ratio to one host ${(eight / one).toFixed(2)}`,
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

/** Hosts are commissioned at real speed, which takes minutes: all that happens in the window is waiting. */
async function perMinuteOfWaiting(stateDir: string, count: number): Promise<number> {
  const rig = await startRig({
    stateDir,
    machines: count,
    speed: 1,
    hubEnv: { MUSTER_WATCH_INTERVAL_MS: String(WATCH_INTERVAL_MS) },
  });
  try {
    const hosts = demoHosts(count);
    const site = await seedSite(rig.api, rig.maas, hosts);
    await rig.api.onboardBatch({ site_id: site.siteId, profile_id: site.profileId, sku_id: site.skuId, nodes: hosts });
    await until(
      "all hosts wait for MAAS",
      async () =>
        (await rig.api.onboardings()).every(
          (onboarding) => onboarding.current_stage === "wait_for_ready" && onboarding.waiting_for !== null,
        )
          ? true
          : undefined,
      { timeoutMs: 120_000 },
    );
    // What still settles when the wait begins is no part of waiting.
    await new Promise((done) => setTimeout(done, SETTLE_SECONDS * 1000));
    const before = totalRequests(await readCounters(rig.maas.control));
    await new Promise((done) => setTimeout(done, WINDOW_SECONDS * 1000));
    return ((totalRequests(await readCounters(rig.maas.control)) - before) * 60) / WINDOW_SECONDS;
  } finally {
    await rig.stop();
  }
}
