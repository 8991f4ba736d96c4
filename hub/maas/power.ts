import type { Transport } from "./http.ts";
import { machinePath } from "./machines.ts";
import type { MaasPort } from "./port.ts";
import { PowerState } from "./schemas.ts";

type Power = Pick<MaasPort, "powerOff" | "powerOn" | "queryPowerState">;

export function power(http: Transport): Power {
  // MAAS may answer power_off with `null` (maas 2.13), so the hub ignores the bodies of power calls.
  const act = async (systemId: string, op: string, form: Readonly<Record<string, string>> = {}): Promise<void> =>
    void (await http.text({ method: "POST", path: machinePath(systemId), op, form, slow: true }));
  return {
    powerOff: (systemId, { soft } = { soft: false }) => act(systemId, "power_off", soft ? { stop_mode: "soft" } : {}),
    powerOn: (systemId) => act(systemId, "power_on"),
    queryPowerState: async (systemId) =>
      (await http.json({ method: "GET", path: machinePath(systemId), op: "query_power_state", slow: true }, PowerState))
        .state,
  };
}
