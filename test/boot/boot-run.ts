import { basename, join } from "node:path";
import { execa } from "execa";
import { endRun, pidOf, startRun } from "../support/run-folder.ts";
import { bootCache } from "./image/boot-image.ts";

export const startBootRun = (): Promise<string> => startRun(join(bootCache(), "runs"), "run", endBootRun);

/** `endBootRun` deletes a run's network before the run's folder, because the network's name follows from the folder's name. */
export async function endBootRun(folder: string): Promise<void> {
  await execa("ip", ["link", "delete", bridgeOf(folder)], { reject: false });
  await endRun(folder);
}

/** The name of a run's network bridge is short, because Linux allows at most fifteen letters for a network interface. */
export const bridgeOf = (run: string): string => `muster${pidOf(basename(run)) ?? ""}`;
