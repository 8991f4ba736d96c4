import type { Machine } from "../state/model.ts";
import { SCRIPT_STATUS } from "../state/model.ts";
import type { Region } from "./region.ts";
import { endScriptSet, SCRIPTS, startScriptSet } from "./scripts.ts";

const WIPE = "wipe-disks";
export interface WipeKind {
  readonly secure: boolean;
  readonly quick: boolean;
}

/** Records a run of the release script that erases a machine's disks. MAAS lists a parameter of its erase script only if the parameter is true. */
export function startWipe(region: Region, machine: Machine, { secure, quick }: WipeKind): void {
  const known = SCRIPTS.find(({ name }) => name === WIPE)?.parameters ?? {};
  const chosen = { quick_erase: quick, secure_erase: secure };
  const parameters = Object.entries(chosen).flatMap(([name, value]) =>
    value ? [[name, { ...(known[name] as object), value }] as const] : [],
  );
  startScriptSet(region, machine, "release", [{ name: WIPE, parameters: Object.fromEntries(parameters) }]);
}

/**
 * Stores what the erase script printed. MAAS stores the output of its erase script only for a machine with status Releasing, never with Disk erasing.
 */
export function endWipe(region: Region, machine: Machine): void {
  endScriptSet(region, machine, "release", SCRIPT_STATUS.passed);
  const result = machine.scriptSets.release?.results[0];
  if (result === undefined) return;
  const asked = (name: string) => result.parameters[name] !== undefined;
  const refuses = region.hardwareOf(machine)?.refusesSecureErase === true;
  const names = machine.blockDevices.map(({ name }) => name);
  const words = names.flatMap((name) => wordsOf(name, asked("secure_erase") && !refuses, asked("quick_erase")));
  result.output = [`${names.join(", ")} to be wiped.`, ...words, "All disks have been successfully wiped.", ""].join(
    "\n",
  );
}

function wordsOf(name: string, secure: boolean, quick: boolean): string[] {
  const nvme = name.startsWith("nvme");
  if (secure)
    return [nvme ? `Secure erase was successful on NVMe drive ${name}` : `${name}: successfully securely erased.`];
  const refused = nvme ? `Device ${name} does not support formatting` : `${name}: drive does not support secure erase.`;
  if (quick) return [refused, `${name}: starting quick wipe.`, `${name}: successfully quickly wiped.`];
  return [refused, nvme ? `${name}: successfully zeroed (using write-zeroes).` : `${name}: successfully zeroed.`];
}
