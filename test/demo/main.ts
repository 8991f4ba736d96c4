/**
 * The demo onboards hosts with a hub process, a simulated MAAS region and one real agent process for each host. With `npm run demo -- --exit`, the
 * demo ends by itself after the onboardings and a turnover of the first host.
 */
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import type { Onboarding } from "../../shared/api/onboardings.ts";
import { startBootWorld } from "../boot/boot-world.ts";
import { ContainerHosts } from "../boot/container-hosts.ts";
import keepCompiledCode from "../config/compile-cache.ts";
import { ownLinuxObstacle } from "../fakes/maas/host/own-linux.ts";
import { removeHubState } from "../support/hub-state.ts";
import { type Rig, startRig } from "../support/rig.ts";
import { type DemoHost, demoHosts, ensureSku, type SeededSite, seedSite } from "../support/seed-site.ts";
import { ProgressView } from "./progress.ts";
import { turnOver } from "./turnover.ts";

const USAGE = `Usage: npm run demo -- [options]
  --exit         end with status 0 when all hosts are active, or with 1 and the reasons
  --hosts N      number of hosts, 1 to 64 (default 8)
  --speed N      how much faster than a real site the simulated MAAS runs (default 20)
  --state DIR    where the demo keeps its data (default .muster/demo); a second start goes on with it
  --fresh        forget the data of earlier runs
  --no-turnover  end after the onboardings, without the turnover of the first host
  --boot         hosts are system containers that boot Debian's own systemd and cloud-init, without the turnover; needs root and LXD
                 (test/boot/README.md)
  --deadline S   with --exit: give up after S seconds (default 300)`;

interface Arguments {
  readonly exit: boolean;
  readonly boot: boolean;
  readonly turnover: boolean;
  readonly hosts: number;
  readonly speed: number;
  readonly stateDir: string;
  readonly fresh: boolean;
  readonly deadlineSeconds: number;
}

function readArguments(): Arguments {
  const { values } = parseArgs({
    allowNegative: true,
    options: {
      exit: { type: "boolean", default: false },
      hosts: { type: "string", default: "8" },
      speed: { type: "string", default: "20" },
      state: { type: "string", default: ".muster/demo" },
      fresh: { type: "boolean", default: false },
      deadline: { type: "string", default: "300" },
      boot: { type: "boolean", default: false },
      turnover: { type: "boolean", default: true },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) {
    process.stdout.write(`${USAGE}\n`);
    process.exit(0);
  }
  const number = (name: string, text: string, least: number, most: number): number => {
    const value = Number(text);
    if (!Number.isFinite(value) || value < least || value > most)
      throw new Error(`--${name} must be a number from ${least} to ${most}, not ${text}`);
    return value;
  };
  return {
    exit: values.exit,
    boot: values.boot,
    turnover: values.turnover,
    hosts: Math.floor(number("hosts", values.hosts, 1, 64)),
    speed: number("speed", values.speed, 0.1, 1000),
    stateDir: resolve(values.state),
    fresh: values.fresh,
    deadlineSeconds: number("deadline", values.deadline, 1, 86_400),
  };
}

/**
 * The first host of the demo has a SKU without GPUs, because its turnover uses the kernel of this computer. In containers no host has GPUs, because
 * each of them sees this computer's.
 */
const SKU_WITHOUT_GPUS = {
  id: "cpu.256c",
  description: "256 CPUs without GPUs",
  gpu_vendor: "none",
  gpus_total: 0,
} as const;

/** Onboards the hosts without GPUs one by one, and all other hosts as one batch. */
async function onboard(
  rig: DemoWorld,
  site: SeededSite,
  hosts: readonly DemoHost[],
  withoutGpus: readonly string[],
): Promise<void> {
  const known = new Set((await rig.api.onboardings()).map((onboarding) => onboarding.hostname));
  const selectors = { site_id: site.siteId, profile_id: site.profileId, sku_id: site.skuId };
  const bare = hosts.filter(({ hostname }) => withoutGpus.includes(hostname) && !known.has(hostname));
  if (bare.length > 0) await ensureSku(rig.api, SKU_WITHOUT_GPUS);
  for (const host of bare) await rig.api.onboard({ ...selectors, ...host, sku_id: SKU_WITHOUT_GPUS.id });
  const missing = hosts.filter(({ hostname }) => !withoutGpus.includes(hostname) && !known.has(hostname));
  if (missing.length > 0) await rig.api.onboardBatch({ ...selectors, nodes: missing });
}

const isOver = (onboarding: Onboarding): boolean => !["pending", "running", "compensating"].includes(onboarding.status);

/**
 * Shows the demo's onboardings until every onboarding has ended or needs a person. The hub may restart while the demo shows the progress of its
 * onboardings.
 */
async function watch(
  rig: DemoWorld,
  hosts: readonly DemoHost[],
  view: ProgressView,
  signal: AbortSignal,
): Promise<void> {
  const names = new Set(hosts.map((host) => host.hostname));
  while (!signal.aborted) {
    const seen = await rig.api.onboardings().catch(() => null);
    if (seen !== null) {
      const ours = seen.filter((onboarding) => names.has(onboarding.hostname));
      view.show(ours);
      if (ours.length === hosts.length && ours.every(isOver)) return;
    }
    await new Promise((done) => setTimeout(done, 300));
  }
}

async function summary(rig: DemoWorld, hosts: readonly DemoHost[]): Promise<{ active: number; text: string }> {
  const nodes = await rig.api.nodes();
  const active = hosts.filter((host) =>
    nodes.some((node) => node.hostname === host.hostname && node.status === "active"),
  ).length;
  return { active, text: `${active} of ${hosts.length} hosts active` };
}

/** The parts of a `Rig` that the demo uses, whether the demo's hosts are folders or containers. */
type DemoWorld = Pick<Rig, "api" | "maas" | "apiUrl" | "adminTokenFile" | "stop"> & { readonly logs: string };

async function startFolders(
  args: Arguments,
  hosts: { readonly ownLinux: readonly string[]; readonly withoutGpus: readonly string[] },
): Promise<DemoWorld> {
  const rig = await startRig({
    stateDir: args.stateDir,
    machines: args.hosts,
    ...hosts,
    speed: args.speed,
    onRestart: (name) => process.stdout.write(`The ${name} ended by itself; starting it again.\n`),
  });
  return { ...rig, logs: args.stateDir };
}

/** Starts the demo's hosts as containers with a real first boot. The first start of containers builds the hosts' image, which takes minutes. */
async function startContainers(hosts: number): Promise<DemoWorld> {
  const { api, maas, folder, stop } = await startBootWorld({ boxes: hosts, lane: ContainerHosts.start });
  const { url, apiKey, controlUrl: control } = maas;
  const adminTokenFile = join(folder, "hub/admin-token");
  return { api, maas: { url, apiKey, control }, apiUrl: api.url, adminTokenFile, logs: folder, stop };
}

async function main(): Promise<number> {
  const args = readArguments();
  keepCompiledCode();
  if (args.fresh) removeHubState(args.stateDir);
  const out = process.stdout;
  const stop = new AbortController();
  for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, () => stop.abort());
  const started = Date.now();
  out.write("Starting a hub with its embedded database, and a simulated MAAS region …\n");
  const hosts = demoHosts(args.hosts);
  const obstacle = args.boot ? "its hosts are system containers" : await ownLinuxObstacle();
  const ownLinux = obstacle === null ? hosts.slice(0, 1).map(({ hostname }) => hostname) : [];
  const withoutGpus = (args.boot ? hosts : hosts.slice(0, 1)).map(({ hostname }) => hostname);
  const rig = args.boot ? await startContainers(args.hosts) : await startFolders(args, { ownLinux, withoutGpus });
  try {
    const site = await seedSite(rig.api, rig.maas, hosts);
    await onboard(rig, site, hosts, withoutGpus);
    out.write(`Site, profile, SKU, credentials and RoCE rows are in place; onboarding ${args.hosts} hosts.\n`);
    const patience = args.exit
      ? AbortSignal.any([stop.signal, AbortSignal.timeout(args.deadlineSeconds * 1000)])
      : stop.signal;
    await watch(rig, hosts, new ProgressView(out), patience);
    const isTurnedOver = !args.turnover || (await showTurnover(rig, hosts, obstacle, patience));
    const result = await summary(rig, hosts);
    out.write(`\n${Math.round((Date.now() - started) / 1000)} s after the start.\n`);
    out.write(`API, console   ${rig.apiUrl}\nAdmin token    ${rig.adminTokenFile}\nLogs           ${rig.logs}\n`);
    if (!args.exit)
      out.write(
        [
          `Simulated MAAS ${rig.maas.url}, its switches ${rig.maas.control} (test/fakes/maas/README.md)`,
          `MAAS token     ${rig.maas.apiKey}`,
          `Command line   export MUSTER_URL=${rig.apiUrl} MUSTER_TOKEN_FILE=${rig.adminTokenFile}; npm run -s muster -- list-nodes`,
          "",
        ].join("\n"),
      );
    if (!args.exit && !stop.signal.aborted) {
      const next = args.boot ? "and forgets it" : "the next start goes on with the same data";
      out.write(`${result.text}. Ctrl-C stops everything; ${next}.\n`);
      await new Promise<void>((done) => stop.signal.addEventListener("abort", () => done(), { once: true }));
      return 0;
    }
    const status = await closing(rig, hosts, result.active, args, stop.signal.aborted);
    return status === 0 && !isTurnedOver ? 1 : status;
  } finally {
    await rig.stop();
    if (stop.signal.aborted) out.write("Stopped.\n");
  }
}

/**
 * Turns the demo's first host over after a tenant. `showTurnover` returns false if the turnover failed. If this computer does not allow the turnover,
 * `showTurnover` prints the reason and returns true.
 */
async function showTurnover(
  rig: DemoWorld,
  hosts: readonly DemoHost[],
  obstacle: string | null,
  signal: AbortSignal,
): Promise<boolean> {
  const out = process.stdout;
  const [first] = hosts;
  if (first === undefined || signal.aborted || (await summary(rig, hosts)).active < hosts.length) return true;
  const { hostname } = first;
  out.write(`\nThe turnover of ${hostname} after a tenant:\n`);
  let last = "";
  const tell = (step: string, text: string): void => {
    out.write(`${(step === last ? "" : step).padEnd(9)} ${text}\n`);
    last = step;
  };
  if (obstacle !== null) {
    tell(
      "not shown",
      `this machine gives ${hostname} no Linux of its own, in which its agent could be root: ${obstacle}`,
    );
    return true;
  }
  try {
    await turnOver({ api: rig.api, hostname, stateDir: rig.logs, tell, signal });
    return true;
  } catch (error) {
    if (!signal.aborted) tell("failed", error instanceof Error ? error.message : String(error));
    else tell("failed", "the turnover was still at work when the demo ended");
    return false;
  }
}

/** Before the summary, `npm run demo -- --exit` prints why a host is not active. */
async function closing(
  rig: DemoWorld,
  hosts: readonly DemoHost[],
  active: number,
  args: Arguments,
  interrupted: boolean,
): Promise<number> {
  if (interrupted) return args.exit ? 130 : 0;
  if (active < hosts.length) {
    for (const onboarding of await rig.api.onboardings()) {
      if (onboarding.status === "completed" || onboarding.status === "reconciled") continue;
      process.stdout.write(
        `${onboarding.hostname}: ${onboarding.status} in ${onboarding.current_stage}: ${onboarding.error_message ?? onboarding.waiting_for ?? "still at work when the deadline passed"}\n`,
      );
    }
  }
  finalLine = `${active} of ${hosts.length} hosts active`;
  return active === hosts.length ? 0 : 1;
}

/** The demo prints its summary after all processes have stopped, so that the summary is the output's last line. */
let finalLine: string | null = null;

main()
  .then((status) => {
    if (finalLine !== null) process.stdout.write(`${finalLine}\n`);
    process.exitCode = status;
  })
  .catch((error: unknown) => {
    process.stderr.write(`The demo failed: ${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
  });
