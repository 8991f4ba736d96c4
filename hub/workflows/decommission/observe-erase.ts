import type { Failure } from "../../../shared/failures.ts";
import { MaasError, type MaasMachine, type MaasPort, type WipedDisk } from "../../maas/port.ts";
import type { DecommissionContext } from "./decommission-context.ts";
import { ERASE_EVENTS, type EraseLack, eraseFellBack, eraseUnproven, reportedEnd } from "./erase-evidence.ts";
import { eraseSigns } from "./erase-signs.ts";
import { erasedDisks, nameDisks, weakerDisks } from "./erased-disks.ts";
import { maasOf, machineOf } from "./release-machine.ts";

/**
 * Judges by MAAS's events, and then by the report of MAAS's release script about each disk, whether the disks of a released machine are erased. MAAS
 * stores the report of its release script only in some releases, and before version 3.5 in none. If MAAS runs several scripts at a release, its
 * events are the same with and without an erase, so only the release script's report can prove an erase. The returned `disks` is the number of disks
 * in the report of MAAS's release script.
 */
export async function observeErase(
  context: DecommissionContext,
  machine: MaasMachine,
): Promise<
  | { readonly kind: "done"; readonly message: string; readonly disks: number }
  | { readonly kind: "failed"; readonly failure: Failure }
> {
  const { systemId } = machineOf(context);
  const maas = await maasOf(context);
  const { erase } = context.input;
  const unproven = (lack: EraseLack) => ({ kind: "failed", failure: eraseUnproven(context, machine, lack) }) as const;
  const { version } = await maas.version();
  const { end, hasReleaseScripts } = eraseSigns(version);
  const events = await maas.machineEvents(systemId, { limit: ERASE_EVENTS, level: "DEBUG" });
  const ended = reportedEnd(events, { workflowId: context.workflowId, end });
  if (erase === "none" || ended === null) return unproven("no_end");
  const by =
    end === "event"
      ? ""
      : `. MAAS ${version} shows the end of an erase only by the release that follows a successful erase`;
  const released = `The machine is released and its disks are erased: it is ${machine.statusName}${by}`;
  const wiped = hasReleaseScripts ? await wipedDisks(maas, systemId) : null;
  if (wiped === "refused") return unproven("no_answer");
  if (wiped === null && ended === "scripts") return unproven("no_words");
  if (wiped === null)
    return { kind: "done", message: `${released}. MAAS did not report how it erased each disk`, disks: 0 };
  const disks = erasedDisks(wiped, await maas.blockDevices(systemId));
  const weaker = weakerDisks(erase, disks);
  if (weaker.length > 0) return { kind: "failed", failure: eraseFellBack(context, machine, weaker) };
  return { kind: "done", message: `${released}. Its disks: ${nameDisks(disks)}`, disks: disks.length };
}

/** The disks in the report of MAAS's release script; null if MAAS stored no report, and `refused` if MAAS refuses the request. */
async function wipedDisks(maas: MaasPort, systemId: string): Promise<readonly WipedDisk[] | null | "refused"> {
  try {
    return await maas.wipedDisks(systemId);
  } catch (error) {
    if (error instanceof MaasError && error.code === "rejected_input") return "refused";
    throw error;
  }
}
