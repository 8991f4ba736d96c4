import { MaasError } from "../../maas/port.ts";
import type { DecommissionContext } from "./decommission-context.ts";
import { maasOf, machineOf } from "./release-machine.ts";

/** Returns the power state that MAAS reads from the BMC now, or `error` if the BMC does not answer. */
export async function askBmc(context: DecommissionContext): Promise<string> {
  try {
    return await (await maasOf(context)).queryPowerState(machineOf(context).systemId);
  } catch (error) {
    if (error instanceof MaasError && (error.code === "power_failure" || error.code === "no_rack")) return "error";
    throw error;
  }
}
