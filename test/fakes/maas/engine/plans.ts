import type { Machine, Plan } from "../state/model.ts";
import type { Region } from "./region.ts";

/** What is to become of the machine's next commissionings and deploys; a plan under its name is there before the machine is. */
export const planOf = (region: Region, machine: Machine): Plan | undefined =>
  region.state.plans[machine.systemId] ?? region.state.plans[machine.hostname];
