import type { Transport } from "./http.ts";
import type { MaasPort } from "./port.ts";
import { Anything, BootResources, Racks, Scripts, Version, WhoAmI } from "./schemas.ts";

type System = Pick<
  MaasPort,
  | "version"
  | "clockAheadSeconds"
  | "whoami"
  | "rackControllers"
  | "bootResources"
  | "scripts"
  | "getConfig"
  | "setConfig"
>;

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
    clockAheadSeconds: () => http.clockAheadSeconds({ method: "GET", path: "version/" }),
    rackControllers: () => http.json({ method: "GET", path: "rackcontrollers/" }, Racks),
    scripts: async (type) => {
      const scripts = await http.json({ method: "GET", path: "scripts/", query: { type } }, Scripts);
      return new Set(scripts.flatMap(({ name, tags }) => [name, ...(tags ?? [])]));
    },
    bootResources: () => http.json({ method: "GET", path: "boot-resources/" }, BootResources),
    getConfig: (name) => http.json({ method: "GET", path: "maas/", op: "get_config", query: { name } }, Anything),
    setConfig: async (name, value) => {
      await http.text({ method: "POST", path: "maas/", op: "set_config", form: { name, value } });
    },
  };
}
