import { type Child, startChild } from "./child.ts";
import { freePort } from "./free-port.ts";

export interface HubPorts {
  readonly http: number;
  readonly agent: number;
}
export const freeHubPorts = async (): Promise<HubPorts> => ({ http: await freePort(), agent: await freePort() });

interface HubProcess {
  readonly databaseUrl: string;
  readonly stateDir: string;
  readonly ports: HubPorts;
  /** Variables in `env` override the environment variables that `startHubProcess` sets for the hub. */
  readonly env?: Readonly<Record<string, string>>;
  readonly logFile: string;
}

/** Starts a hub in a process that only processes on this computer can reach. */
export const startHubProcess = ({ databaseUrl, stateDir, ports, env, logFile }: HubProcess): Child =>
  startChild({
    name: "hub",
    script: "hub/main.ts",
    env: {
      DATABASE_URL: databaseUrl,
      MUSTER_STATE_DIR: stateDir,
      MUSTER_HTTP_PORT: String(ports.http),
      MUSTER_AGENT_HOST: "127.0.0.1",
      MUSTER_AGENT_PORT: String(ports.agent),
      MUSTER_AGENT_URL: `https://127.0.0.1:${ports.agent}`,
      ...env,
    },
    logFile,
  });
