import { basename, join } from "node:path";
import { execa } from "execa";
import { endRun, pidOf, startRun } from "../support/run-folder.ts";
import { bootCache } from "./image/boot-image.ts";

/** Creates the folder for the files of a run of the boot suite, after it has cleaned up the runs of killed processes. */
export const startBootRun = (): Promise<string> => startRun(join(bootCache(), "runs"), "run", endBootRun);

/**
 * Cleans up a run of the boot suite. `endBootRun` deletes the run's network before the run's folder, because the network's name is computed from the
 * folder's name. A run of the boot suite without containers has no network.
 */
export async function endBootRun(folder: string): Promise<void> {
  await execa("ip", ["link", "delete", bridgeOf(folder)], { reject: false });
  await endRun(folder);
}

/** Returns the name of the network bridge of a run of the boot suite. In Linux, a network interface name has at most fifteen letters. */
export const bridgeOf = (run: string): string => `muster${pidOf(basename(run)) ?? ""}`;
