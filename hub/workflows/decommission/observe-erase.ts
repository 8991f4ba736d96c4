import type { Failure } from "../../../shared/failures.ts";
import { MaasError, type MaasMachine, type MaasPort, type WipedDisk } from "../../maas/port.ts";
import type { DecommissionContext } from "./decommission-context.ts";
import { ERASE_EVENTS, eraseFellBack, eraseUnproven, reportsErase } from "./erase-evidence.ts";
import { erasedDisks, nameDisks, weakerDisks } from "./erased-disks.ts";
import { maasOf, machineOf } from "./release-machine.ts";

/**
 * Judges the erase of a free machine: first by MAAS's events, and then by the words of MAAS's release script about each disk. MAAS stores the words of
 * the script only in some releases, and before version 3.5 in none. Without stored words the events alone decide.
 */
export async function observeErase(
  context: DecommissionContext,
  machine: MaasMachine,
): Promise<
  { readonly kind: "done"; readonly message: string } | { readonly kind: "failed"; readonly failure: Failure }
> {
  const { systemId } = machineOf(context);
  const maas = await maasOf(context);
  const { erase } = context.input;
  const events = await maas.machineEvents(systemId, { limit: ERASE_EVENTS, level: "DEBUG" });
  if (erase === "none" || !reportsErase(events, context.workflowId))
    return { kind: "failed", failure: eraseUnproven(context, machine) };
  const released = `The machine is released and its disks are erased: it is ${machine.statusName}`;
  const wiped = await wipedDisks(maas, systemId);
  if (wiped === null) return { kind: "done", message: `${released}. MAAS did not report how it erased each disk` };
  const disks = erasedDisks(wiped, await maas.blockDevices(systemId));
  const weaker = weakerDisks(erase, disks);
  if (weaker.length > 0) return { kind: "failed", failure: eraseFellBack(context, machine, weaker) };
  return { kind: "done", message: `${released}. Its disks: ${nameDisks(disks)}` };
}

/** The disks that the release script reports; null if MAAS stored no words of the script, or if this version of MAAS has no release scripts. */
async function wipedDisks(maas: MaasPort, systemId: string): Promise<readonly WipedDisk[] | null> {
  try {
    return await maas.wipedDisks(systemId);
  } catch (error) {
    if (error instanceof MaasError && error.code === "rejected_input") return null;
    throw error;
  }
}
