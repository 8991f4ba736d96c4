import { readFileSync } from "node:fs";
import { join } from "node:path";
import { execa } from "execa";
import { z } from "zod";
import { Profile } from "../../shared/api/profiles.ts";
import { type MaasSimulator, startMaasSimulator } from "../fakes/maas/simulator.ts";
import { type Child, startChild } from "../support/child.ts";
import { freePort } from "../support/free-port.ts";
import { HubApi } from "../support/hub-api.ts";
import { type DemoHost, demoHosts, ensureSku, type SeededSite, seedSite } from "../support/seed-site.ts";
import { until } from "../support/until.ts";
import { endBootRun, startBootRun } from "./boot-run.ts";
import type { ContainerHosts } from "./container-hosts.ts";
import { type BootImage, bootImage } from "./image/boot-image.ts";
import type { Lane } from "./lane.ts";

const REPOSITORY = new URL("../..", import.meta.url).pathname;

/**
 * A hub process, a simulated MAAS region, and real hosts for the region's machines. The hosts of the boot suite reach only the hub and the simulated
 * region over the network.
 */
const SKU_WITHOUT_GPUS = { id: "cpu.256c", description: "256 CPUs", gpu_vendor: "none", gpus_total: 0 } as const;

export interface BootWorld<L extends Lane = ContainerHosts> {
  readonly api: HubApi;
  readonly maas: MaasSimulator;
  readonly hosts: L;
  readonly site: SeededSite;
  readonly boxes: readonly DemoHost[];
  readonly agentPort: number;
  /** The folder for the files of one run of the boot suite, which the suite removes at the end of the run. */
  readonly folder: string;
  /** Onboards the n-th host of the simulated region, counted from 1. The profile of the onboarding gets the settings in `profile`. */
  onboard(n: number, profile?: Readonly<Record<string, unknown>>): Promise<{ id: string; hostname: string }>;
  verb(id: string, verb: string): Promise<unknown>;
  ended(id: string, timeoutMs?: number): ReturnType<HubApi["onboarding"]>;
  stop(): Promise<void>;
}

export interface BootOptions<L extends Lane> {
  readonly boxes: number;
  readonly profile?: Readonly<Record<string, unknown>>;
  readonly lane: (folder: string, image: BootImage) => Promise<L>;
}

export async function startBootWorld<L extends Lane>(options: BootOptions<L>): Promise<BootWorld<L>> {
  const image = await bootImage();
  const folder = await startBootRun();
  const closers: (() => Promise<void>)[] = [() => endBootRun(folder)];
  const stop = async (): Promise<void> => {
    for (const close of closers.splice(0).reverse()) await close();
  };
  try {
    const packages = join(folder, "agent-packages");
    await buildAgent(packages);
    const hosts = await options.lane(folder, image);
    closers.push(() => hosts.stop());
    const maas = await startMaasSimulator({ host: hosts.listen, machines: options.boxes, speed: 300 });
    closers.push(() => maas.close());
    hosts.attach(maas.sim.region, maas.url.replace(hosts.listen, hosts.reach));
    const agentPort = await freePort(hosts.listen);
    const { hub, api } = await startHub(folder, hosts, agentPort, packages);
    closers.push(() => hub.stop());
    const boxes = demoHosts(options.boxes);
    const seeded = await seedSite(api, maas, boxes, options.profile);
    // The containers and virtual machines of these tests have no GPUs.
    await ensureSku(api, SKU_WITHOUT_GPUS);
    const site = { ...seeded, skuId: SKU_WITHOUT_GPUS.id };
    const parts = { api, maas, hosts, site, boxes, agentPort, folder };
    return { ...parts, ...operations(parts), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

type Operations = Pick<BootWorld, "onboard" | "verb" | "ended">;
function operations({
  api,
  hosts,
  site,
  boxes,
}: Pick<BootWorld<Lane>, "api" | "hosts" | "site" | "boxes">): Operations {
  return {
    onboard: async (n, profile) => {
      const box = boxes[n - 1];
      if (box === undefined) throw new Error(`there is no box ${n}`);
      const path = `/api/v1/admin/maas-sites/${site.siteId}/profiles`;
      const own = profile && (await api.call(Profile, "POST", path, { name: `box-${n}`, ...profile }));
      const selectors = { site_id: site.siteId, profile_id: own?.id ?? site.profileId, sku_id: site.skuId };
      const { onboarding_id: id } = await api.onboard({ ...selectors, ...box });
      return { id, hostname: box.hostname };
    },
    verb: (id, verb) =>
      api.call(z.unknown(), "POST", `/api/v1/admin/onboardings/${id}/${verb}`, { reason: "boot suite" }),
    ended: (id, timeoutMs = 240_000) =>
      until(
        `onboarding ${id} to end`,
        async () => {
          const onboarding = await api.onboarding(id);
          return ["pending", "running", "compensating"].includes(onboarding.status) ? undefined : onboarding;
        },
        { timeoutMs, everyMs: 300, signal: hosts.failed },
      ),
  };
}

/** Builds the agent's Debian package with fast compression. */
async function buildAgent(out: string): Promise<void> {
  const key = join(out, "..", "key.pem");
  const words = [
    "packaging/main.ts",
    "--only",
    "muster-agent",
    "--compress",
    "zstd",
    "--out",
    out,
    "--signing-key",
    key,
  ];
  await execa(process.execPath, words, { cwd: REPOSITORY });
}

async function startHub(
  folder: string,
  { listen, reach }: Lane,
  agentPort: number,
  packages: string,
): Promise<{ hub: Child; api: HubApi }> {
  const hub = startChild({
    name: "hub",
    script: "hub/main.ts",
    env: {
      MUSTER_STATE_DIR: join(folder, "hub"),
      MUSTER_HTTP_PORT: "0",
      MUSTER_AGENT_HOST: listen,
      MUSTER_AGENT_PORT: String(agentPort),
      MUSTER_AGENT_URL: `https://${reach}:${agentPort}`,
      MUSTER_AGENT_PACKAGE_DIR: packages,
      MUSTER_WATCH_INTERVAL_MS: "500",
      MUSTER_HEARTBEAT_MIN_TTL_MS: "3000",
    },
    logFile: join(folder, "hub.log"),
  });
  const { listening } = (await hub.ready) as { listening: string };
  const token = readFileSync(join(folder, "hub/admin-token"), "utf8").trim();
  return { hub, api: new HubApi(listening, token) };
}
