import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DEFAULT_API_KEY } from "../fakes/maas/state/seed.ts";
import { type Child, startChild } from "./child.ts";
import { freePort } from "./free-port.ts";
import { HubApi } from "./hub-api.ts";
import { knownSecrets, leaksInLogsBelow, SecretLeaked } from "./known-secrets.ts";
import { type Supervised, supervise } from "./supervise.ts";
import { startTcpFront, type TcpFront } from "./tcp-front.ts";
import { LONG_WAIT_MS, until } from "./until.ts";

export interface RigOptions {
  /** The folder with the data of the test environment, with which a later test environment on this folder continues. */
  readonly stateDir: string;
  readonly machines: number;
  readonly speed: number;
  /** How many hub processes share the database, by default one. With several hub processes the test environment has a load balancer. */
  readonly hubs?: number;
  /** The URL of the hubs' database. By default, a hub starts its own embedded database. */
  readonly databaseUrl?: string;
  readonly hubEnv?: Readonly<Record<string, string>>;
  readonly hubNodeArgs?: readonly string[];
  /** The checkout of another version of Muster, from which the first hub runs. The other hubs start when the first hub is ready. */
  readonly firstHubFrom?: string;
  readonly ownLinux?: readonly string[];
  /** The hostnames of hosts without GPUs; every other host has the eight GPUs of the SKU in `seed-site.ts`. */
  readonly withoutGpus?: readonly string[];
  /** The API key of the simulated MAAS, by default `DEFAULT_API_KEY`. */
  readonly apiKey?: string;
  /** The test environment calls `onRestart` with the name of a process that has ended unexpectedly, and then restarts the process. */
  readonly onRestart?: (name: string) => void;
}

interface Ports {
  readonly maas: number;
  readonly http: number;
  readonly agent: number;
  /**
   * The ports of each hub, if the test environment has several hubs. If a test environment has several hubs, `http` and `agent` are ports of the load
   * balancer.
   */
  readonly hubs?: readonly { readonly http: number; readonly agent: number }[];
}

export interface RigHub {
  readonly url: string;
  pid(): number;
  /** Kills the hub process, and returns a function that restarts the hub. */
  keepDown(): Promise<() => void>;
  ready(): Promise<void>;
}

/** A test environment with hubs and a simulated MAAS as real processes. */
export interface Rig {
  readonly maas: { readonly url: string; readonly apiKey: string; readonly control: string };
  readonly api: HubApi;
  readonly apiUrl: string;
  readonly adminTokenFile: string;
  readonly hubs: readonly RigHub[];
  readonly hubPid: () => number;
  /** Kills the simulated MAAS, and returns a function that restarts the simulated MAAS. */
  keepMaasDown(): Promise<() => void>;
  hubReady(): Promise<void>;
  /** Stops the processes of the test environment, and fails when a log contains a secret of the test data. */
  stop(): Promise<void>;
}

export async function startRig(options: RigOptions): Promise<Rig> {
  mkdirSync(options.stateDir, { recursive: true });
  const count = options.hubs ?? 1;
  const ports = await rememberedPorts(options.stateDir, count);
  const own = ports.hubs ?? [{ http: ports.http, agent: ports.agent }];
  const maas = supervise(() => startMaas(options, ports), options.onRestart);
  await maas.current().ready;
  const hubs: (RigHub & { readonly process: Supervised })[] = [];
  let fronts: TcpFront[] = [];
  const stop = async (): Promise<void> => {
    await Promise.all(hubs.map((hub) => hub.process.stop()));
    await Promise.all(fronts.map((front) => front.close()));
    await maas.stop();
  };
  const apiUrl = `http://127.0.0.1:${ports.http}`;
  try {
    for (const [index, listens] of own.slice(0, count).entries()) {
      hubs.push(runHub(options, index, { ...ports, ...listens }, `https://127.0.0.1:${ports.agent}`));
      if (options.firstHubFrom !== undefined) await hubs[0]?.ready();
    }
    await Promise.all(hubs.map((hub) => hub.process.current().ready));
    await Promise.all(hubs.map((hub) => hub.ready()));
    if (count > 1)
      fronts = await Promise.all(
        (["http", "agent"] as const).map((kind) =>
          startTcpFront(
            ports[kind],
            own
              .slice(0, count)
              .map((listens, index) => ({ port: listens[kind], readyUrl: `${hubs[index]?.url}/readyz` })),
          ),
        ),
      );
  } catch (error) {
    await stop();
    throw error;
  }
  const adminTokenFile = join(options.stateDir, "hub/admin-token");
  return {
    maas: {
      url: `http://127.0.0.1:${ports.maas}/MAAS`,
      apiKey: options.apiKey ?? DEFAULT_API_KEY,
      control: `http://127.0.0.1:${ports.maas}/_sim`,
    },
    api: new HubApi(apiUrl, readFileSync(adminTokenFile, "utf8").trim()),
    apiUrl,
    adminTokenFile,
    hubs,
    hubPid: () => hubs[0]?.pid() ?? -1,
    keepMaasDown: maas.keepDown,
    hubReady: () => answersReady(apiUrl),
    stop: async () => {
      await stop();
      const secrets = knownSecrets();
      if (existsSync(adminTokenFile)) secrets.add("the admin token", readFileSync(adminTokenFile, "utf8").trim());
      const leaks = existsSync(options.stateDir) ? leaksInLogsBelow(options.stateDir, secrets) : [];
      if (leaks.length > 0) throw new SecretLeaked(leaks);
    },
  };
}

const startMaas = (options: RigOptions, ports: Ports): Child =>
  startChild({
    name: "simulated MAAS",
    script: "test/fakes/maas/main.ts",
    args: [
      ["--port", String(ports.maas)],
      ["--state-file", join(options.stateDir, "maas.json")],
      ["--hosts-dir", join(options.stateDir, "hosts")],
      ["--speed", String(options.speed)],
      ["--machines", String(options.machines)],
      ["--own-linux", (options.ownLinux ?? []).join(",")],
      ["--without-gpus", (options.withoutGpus ?? []).join(",")],
      ["--api-key", options.apiKey ?? DEFAULT_API_KEY],
    ].flat(),
    logFile: join(options.stateDir, "maas.log"),
  });

/** If the hubs use an outside database, each hub has its own state folder. The state folder of the first hub holds the files that all hubs share. */
function runHub(options: RigOptions, index: number, ports: Ports, agentUrl: string): RigHub & { process: Supervised } {
  const name = index === 0 ? "hub" : `hub-${index + 1}`;
  const shared = join(options.stateDir, "hub");
  const database: Record<string, string> =
    options.databaseUrl === undefined
      ? { MUSTER_STATE_DIR: shared }
      : { MUSTER_STATE_DIR: join(options.stateDir, name), DATABASE_URL: options.databaseUrl };
  const process = supervise(
    () =>
      startChild({
        name,
        script: "hub/main.ts",
        checkout: index === 0 ? options.firstHubFrom : undefined,
        nodeArgs: options.hubNodeArgs ?? [],
        env: {
          ...database,
          MUSTER_SHARED_DIR: shared,
          MUSTER_HTTP_PORT: String(ports.http),
          MUSTER_AGENT_HOST: "127.0.0.1",
          MUSTER_AGENT_PORT: String(ports.agent),
          MUSTER_AGENT_URL: agentUrl,
          MUSTER_WATCH_INTERVAL_MS: "500",
          MUSTER_HEARTBEAT_MIN_TTL_MS: "3000",
          ...options.hubEnv,
        },
        logFile: join(options.stateDir, `${name}.log`),
      }),
    options.onRestart,
  );
  const url = `http://127.0.0.1:${ports.http}`;
  return {
    process,
    url,
    pid: () => process.current().pid,
    keepDown: process.keepDown,
    ready: () => answersReady(url),
  };
}

async function answersReady(url: string): Promise<void> {
  await until(
    `${url} answers /readyz`,
    async () => ((await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(2_000) })).ok ? true : undefined),
    { timeoutMs: LONG_WAIT_MS, everyMs: 100 },
  );
}

/** The ports of a test environment stay the same after a restart, because hosts and database rows contain addresses with the ports. */
async function rememberedPorts(stateDir: string, hubs: number): Promise<Ports> {
  const file = join(stateDir, "ports.json");
  if (existsSync(file)) return JSON.parse(readFileSync(file, "utf8")) as Ports;
  const ports: Ports = { maas: await freePort(), http: await freePort(), agent: await freePort() };
  const own: { http: number; agent: number }[] = [];
  for (let hub = 0; hubs > 1 && hub < hubs; hub += 1) own.push({ http: await freePort(), agent: await freePort() });
  const all = hubs > 1 ? { ...ports, hubs: own } : ports;
  writeFileSync(file, JSON.stringify(all));
  return all;
}
