import type { Region } from "../engine/region.ts";
export interface SupervisorOptions {
  region: Region;
  hostsDir: string;
  runParts: readonly string[];
  omitHwSyncFiles: boolean;
}
export class HostSupervisor {
  constructor(_options: SupervisorOptions) {}
  async start(_origin: string): Promise<void> {}
  async stop(): Promise<void> {}
  async unit(): Promise<{ code: number; output: string }> {
    return { code: 1, output: "" };
  }
  describe(): unknown {
    return [];
  }
}
