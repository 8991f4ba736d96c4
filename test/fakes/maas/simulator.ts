import type { AddressInfo } from "node:net";
import { performJob } from "./engine/jobs.ts";
import type { Timings } from "./engine/region.ts";
import { DEFAULT_TIMINGS, Region } from "./engine/region.ts";
import { HostSupervisor } from "./host/supervisor.ts";
import { Control } from "./http/control.ts";
import { FaultBook } from "./http/faults.ts";
import { createMaasServer } from "./http/server.ts";
import type { MaasVersion, State } from "./state/model.ts";
import { DEFAULT_API_KEY, emptyRegion, keptApiKey } from "./state/seed.ts";
import { buildSite } from "./state/site.ts";
import { StateStore } from "./state/store.ts";

export interface MaasSimulatorOptions {
  /** The simulator's port, or 0 for any free port. */
  port?: number;
  host?: string;
  version?: MaasVersion;
  /** The number by which the simulator divides every simulated duration. */
  speed?: number;
  /** The durations of the simulated region's actions, in simulated seconds, with `DEFAULT_TIMINGS` as defaults. */
  timings?: Partial<Timings>;
  /** The number of simulated servers in the racks at the first start. */
  machines?: number;
  /** The API key of a new region's administrator. A region from a state file keeps the API key in that file. */
  apiKey?: string;
  /** The file with the state of the simulated region. */
  stateFile?: string;
  /** The state with which the simulated region continues. Without `stateFile`, the simulator keeps the state only in memory. */
  state?: State;
  /** The folder in which each deployed machine's simulated host has a subfolder. Without `hostsDir`, the simulator plays no hosts. */
  hostsDir?: string;
  /**
   * Filenames of the user-data parts that a simulated host runs. A simulated host unpacks and lists all parts of the user data, but runs only the
   * parts in `runParts`.
   */
  runParts?: readonly string[];
  /** If true, the vendor data of deployed machines lacks the files of hardware sync. */
  omitHwSyncFiles?: boolean;
  ownLinux?: readonly string[];
  /** The hostnames of simulated hosts without GPUs; every other one has eight of AMD. */
  withoutGpus?: readonly string[];
  /** If true, a host that is up greets at port 22 of its address as an SSH server. */
  ssh?: boolean;
  /** Environment variables of every process on the simulated hosts. */
  hostEnvironment?: Readonly<Record<string, string>>;
}

export interface MaasSimulator {
  /** The simulated region's address, `http://HOST:PORT/MAAS`. */
  url: string;
  controlUrl: string;
  apiKey: string;
  sim: { region: Region; faults: FaultBook };
  close(): Promise<void>;
}

const DEFAULT_RUN_PARTS = ["20-agent-bootstrap.sh"] as const;

export async function startMaasSimulator(options: MaasSimulatorOptions = {}): Promise<MaasSimulator> {
  const version = options.version ?? "3.7.3";
  const store = new StateStore(options.stateFile ?? null);
  const kept = options.state ?? store.load();
  const state = kept ?? emptyRegion(options.apiKey ?? DEFAULT_API_KEY, version);
  const apiKey = keptApiKey(state) ?? DEFAULT_API_KEY;
  if (kept === null && (options.machines ?? 0) > 0) buildSite(state, options.machines ?? 0);
  const region = new Region({
    state,
    store,
    version,
    speed: options.speed ?? 1,
    timings: { ...DEFAULT_TIMINGS, ...options.timings },
    onJob: performJob,
  });
  const faults = new FaultBook();
  const hosts =
    options.hostsDir === undefined
      ? null
      : new HostSupervisor({
          region,
          hostsDir: options.hostsDir,
          runParts: options.runParts ?? DEFAULT_RUN_PARTS,
          omitHwSyncFiles: options.omitHwSyncFiles ?? false,
          ownLinux: options.ownLinux ?? [],
          withoutGpus: options.withoutGpus ?? [],
          ssh: options.ssh ?? false,
          environment: options.hostEnvironment ?? {},
        });
  const server = createMaasServer({ region, faults, control: new Control({ region, faults, hosts }) });
  const host = options.host ?? "127.0.0.1";
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(options.port ?? 0, host, resolve);
  });
  const { port } = server.address() as AddressInfo;
  const origin = `http://${host}:${port}`;
  hosts?.start(origin);
  region.start();
  return {
    url: `${origin}/MAAS`,
    controlUrl: `${origin}/_sim`,
    apiKey,
    sim: { region, faults },
    async close() {
      region.stop();
      await hosts?.stop();
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
      region.changed();
      region.flush();
    },
  };
}
