import type { Log } from "../log.ts";
import type { System } from "../system/system.ts";
import { SCRUB_JOURNAL } from "./scrub-journal-path.ts";

/**
 * Restores, at the agent's start, what a GPU cleaning of an earlier boot had stopped. If a GPU cleaning that began in the present boot is still
 * running, its task restores what the cleaning stopped. If the host has no journal of a GPU cleaning, the agent does not load the code of GPU
 * cleanings, to save memory.
 */
export async function giveBackAfterBoot(system: System, log: Log): Promise<void> {
  try {
    if ((await system.read(SCRUB_JOURNAL)) === null) return;
    const { readJournal } = await import("./scrub-journal.ts");
    const journal = await readJournal(system);
    if (journal === null || journal.boot_id === (await system.bootId())) return;
    const { giveBack } = await import("./gpu-give-back.ts");
    const { SCRUB_TIMING } = await import("./scrub-timing.ts");
    const { services, failures } = await giveBack(system, SCRUB_TIMING, journal);
    if (failures.length === 0) log.info("services of an interrupted GPU cleaning were started", { services });
    else log.error("services of an interrupted GPU cleaning could not be started", { services, failures });
  } catch (error) {
    log.error("an interrupted GPU cleaning could not be undone", { error });
  }
}
