import { z } from "zod";
import { RepairMode, RepairStateName } from "./repair.ts";

const RepairChanged = z.strictObject({
  repair_id: z.string(),
  node_id: z.string(),
  hostname: z.string(),
  site_id: z.string().nullable(),
  mode: RepairMode,
  state: RepairStateName,
  attempt: z.int(),
  /** The tenant whose repair systems see the repair case; null for a repair case that nobody has claimed for a tenant. */
  repair_tenant: z.string().nullable(),
  by: z.string(),
  message: z.string(),
});
const of = (meaning: string) => ({ subject: "repairs/{repair_id}", meaning, data: RepairChanged }) as const;

/** The domain events of repair cases. */
export const REPAIR_EVENTS = {
  "repair.opened": of("A fault of a machine was reported, so the machine has a repair case."),
  "repair.requested": of("A repair system or a person may claim the machine."),
  "repair.held_back": of(
    "The site repairs automatically, but this report became no request; `message` has the reason.",
  ),
  "repair.claimed": of("Somebody repairs the machine."),
  "repair.repaired": of("The repair is said to be done; the machine leaves its repair after its checks."),
  "repair.failed": of("An attempt ended without success, or a machine that counted as repaired did not pass a check."),
  "repair.escalated": of("A person of the provider must look at the machine."),
  "repair.changed": of(
    "A case was changed without another meaning, e.g. a request was withdrawn or a validation passed.",
  ),
  "repair.closed": of("The machine is out of repair."),
  "repair.abandoned": of("The node was removed during its repair."),
} as const;
