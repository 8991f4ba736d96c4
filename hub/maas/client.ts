import { deploy } from "./deploy.ts";
import { events } from "./events.ts";
import { createTransport, type TransportOptions } from "./http.ts";
import { machines } from "./machines.ts";
import { network } from "./network.ts";
import type { MaasPort } from "./port.ts";
import { power } from "./power.ts";
import { storage } from "./storage.ts";
import { system } from "./system.ts";
import { wipeReport } from "./wipe-report.ts";

/**
 * Makes a client for one site's MAAS region. The caller of `createMaasClient` reads the site's token and makes a new client for each use, because the
 * client keeps no state (decision P3).
 */
export function createMaasClient(options: TransportOptions): MaasPort {
  const http = createTransport(options);
  return {
    ...system(http),
    ...machines(http),
    ...deploy(http),
    ...power(http),
    ...storage(http),
    ...network(http),
    ...events(http),
    ...wipeReport(http),
  };
}
