import { basename, join } from "node:path";
import { execa } from "execa";
import { endRun, pidOf, startRun } from "../support/run-folder.ts";
import { bootCache } from "./image/boot-image.ts";

/** The folder of this process's boots. */
export const startBootRun = (): Promise<string> => startRun(join(bootCache(), "runs"), "run", endBootRun);

/** Cleans up a run. The network is deleted first, because the name of the network comes from the folder. A run without containers has no network. */
export async function endBootRun(folder: string): Promise<void> {
  await execa("ip", ["link", "delete", bridgeOf(folder)], { reject: false });
  await endRun(folder);
}

/** The name of the run's network. A network name has at most fifteen letters. */
export const bridgeOf = (run: string): string => `muster${pidOf(basename(run)) ?? ""}`;
