import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { type Child, startChild } from "./child.ts";
import { HubApi } from "./hub-api.ts";
import { until } from "./until.ts";

export interface RigOptions {
  /** Everything that the rig writes; a second rig on the same folder goes on with the same data. */
  readonly stateDir: string;
  readonly machines: number;
  /** How much faster than a real site the simulated MAAS runs. */
  readonly speed: number;
  readonly hubEnv?: Readonly<Record<string, string>>;
  /** Told when a process ended that nobody stopped; it is started again, as systemd would. */
  readonly onRestart?: (name: string) => void;
}

interface Ports {
  readonly maas: number;
  readonly http: number;
  readonly agent: number;
}

/** A hub and a simulated MAAS as real processes, kept running like services. */
export interface Rig {
  readonly maas: { readonly url: string; readonly apiKey: string; readonly control: string };
  readonly api: HubApi;
  readonly apiUrl: string;
  readonly adminTokenFile: string;
  readonly hubPid: () => number;
  readonly maasPid: () => number;
  /** Waits until the hub answers `/readyz`. */
  hubReady(): Promise<void>;
  stop(): Promise<void>;
}

const SIMULATOR_KEY = "simConsumer0000001:simToken000000001:simTokenSecret0000000000000000001";

export async function startRig(options: RigOptions): Promise<Rig> {
  mkdirSync(options.stateDir, { recursive: true });
  const ports = await rememberedPorts(options.stateDir);
  const state = (name: string) => join(options.stateDir, name);
  const maas = supervise(options, () =>
    startChild({
      name: "simulated MAAS",
      script: "test/fakes/maas/main.ts",
      args: [
        ["--port", String(ports.maas)],
        ["--state-file", state("maas.json")],
        ["--hosts-dir", state("hosts")],
        ["--speed", String(options.speed)],
        ["--machines", String(options.machines)],
        ["--api-key", SIMULATOR_KEY],
      ].flat(),
      logFile: state("maas.log"),
    }),
  );
  await maas.current().ready;
  const hub = supervise(options, () =>
    startChild({
      name: "hub",
      script: "hub/main.ts",
      env: { ...hubEnv(options.stateDir, ports), ...options.hubEnv },
      logFile: state("hub.log"),
    }),
  );
  const apiUrl = `http://127.0.0.1:${ports.http}`;
  const hubReady = () =>
    until(
      "the hub answers /readyz",
      async () => ((await fetch(`${apiUrl}/readyz`, { signal: AbortSignal.timeout(2_000) })).ok ? true : undefined),
      { timeoutMs: 90_000, everyMs: 100 },
    ).then(() => undefined);
  try {
    await hub.current().ready;
    await hubReady();
  } catch (error) {
    await hub.stop();
    await maas.stop();
    throw error;
  }
  const adminTokenFile = state("hub/admin-token");
  return {
    maas: {
      url: `http://127.0.0.1:${ports.maas}/MAAS`,
      apiKey: SIMULATOR_KEY,
      control: `http://127.0.0.1:${ports.maas}/_sim`,
    },
    api: new HubApi(apiUrl, readFileSync(adminTokenFile, "utf8").trim()),
    apiUrl,
    adminTokenFile,
    hubPid: () => hub.current().pid,
    maasPid: () => maas.current().pid,
    hubReady,
    stop: async () => {
      await hub.stop();
      await maas.stop();
    },
  };
}

const hubEnv = (stateDir: string, ports: Ports): Record<string, string> => ({
  MUSTER_STATE_DIR: join(stateDir, "hub"),
  MUSTER_HTTP_PORT: String(ports.http),
  MUSTER_AGENT_HOST: "127.0.0.1",
  MUSTER_AGENT_PORT: String(ports.agent),
  MUSTER_AGENT_URL: `https://127.0.0.1:${ports.agent}`,
  MUSTER_WATCH_INTERVAL_MS: "500",
  MUSTER_HEARTBEAT_MIN_TTL_MS: "3000",
});

/** Starts again whatever ends by itself, half a second later; `stop` ends that. */
function supervise(options: RigOptions, start: () => Child): { current(): Child; stop(): Promise<void> } {
  let stopping = false;
  let child = start();
  const watch = (watched: Child): void => {
    void watched.gone.then(() => {
      if (stopping) return;
      options.onRestart?.(watched.name);
      setTimeout(() => {
        if (stopping) return;
        child = start();
        watch(child);
      }, 500);
    });
  };
  watch(child);
  return {
    current: () => child,
    stop: async () => {
      stopping = true;
      await child.stop();
    },
  };
}

/** Ports are kept with the data: hosts and database rows hold addresses that must still be right at the next start. */
async function rememberedPorts(stateDir: string): Promise<Ports> {
  const file = join(stateDir, "ports.json");
  if (existsSync(file)) return JSON.parse(readFileSync(file, "utf8")) as Ports;
  const ports = { maas: await freePort(), http: await freePort(), agent: await freePort() };
  writeFileSync(file, JSON.stringify(ports));
  return ports;
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      if (address === null || typeof address === "string") return reject(new Error("no port was bound"));
      server.close(() => resolve(address.port));
    });
  });
}
