import { deploy } from "./deploy.ts";
import { events } from "./events.ts";
import { createTransport, type TransportOptions } from "./http.ts";
import { machines } from "./machines.ts";
import { network } from "./network.ts";
import type { MaasPort } from "./port.ts";
import { power } from "./power.ts";
import { storage } from "./storage.ts";
import { system } from "./system.ts";

/** A client for one site with the token as read for this use; it holds nothing, so it is made anew each time (decision P3). */
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
  };
}
