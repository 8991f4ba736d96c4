import type { Machine, Plan } from "../state/model.ts";
import type { Region } from "./region.ts";

/**
 * The planned outcomes of the machine's next commissionings and deploys. A test may plan outcomes for a hostname before a machine with the hostname
 * exists.
 */
export const planOf = (region: Region, machine: Machine): Plan | undefined =>
  region.state.plans[machine.systemId] ?? region.state.plans[machine.hostname];
