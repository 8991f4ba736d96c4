import { basename, join } from "node:path";
import { execa } from "execa";
import { endRun, pidOf, startRun } from "../support/run-folder.ts";
import { bootCache } from "./image/boot-image.ts";

/** A folder for this process's boots. */
export const startBootRun = (): Promise<string> => startRun(join(bootCache(), "runs"), "run", endBootRun);

/** The network first, which nobody would find again without the folder. There is none where no container was started. */
export async function endBootRun(folder: string): Promise<void> {
  await execa("ip", ["link", "delete", bridgeOf(folder)], { reject: false });
  await endRun(folder);
}

/** The run's network. Such a name has at most fifteen letters. */
export const bridgeOf = (run: string): string => `muster${pidOf(basename(run)) ?? ""}`;
