import type { Transport } from "./http.ts";
import type { MaasPort } from "./port.ts";
import { Anything, BootResources, Racks, Version, WhoAmI } from "./schemas.ts";

type System = Pick<MaasPort, "version" | "whoami" | "rackControllers" | "bootResources" | "getConfig">;

export function system(http: Transport): System {
  return {
    version: async () => {
      const answer = await http.json({ method: "GET", path: "version/" }, Version);
      return { version: answer.version, capabilities: answer.capabilities ?? [] };
    },
    whoami: async () => {
      const user = await http.json({ method: "GET", path: "users/", op: "whoami" }, WhoAmI);
      return { username: user.username, isSuperuser: user.is_superuser };
    },
    rackControllers: async () =>
      (await http.json({ method: "GET", path: "rackcontrollers/" }, Racks)).map((rack) => ({
        systemId: rack.system_id,
        hostname: rack.hostname,
      })),
    bootResources: () => http.json({ method: "GET", path: "boot-resources/" }, BootResources),
    getConfig: (name) => http.json({ method: "GET", path: "maas/", op: "get_config", query: { name } }, Anything),
  };
}
