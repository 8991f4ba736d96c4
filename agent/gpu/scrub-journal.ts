import { z } from "zod";
import { GPU_VENDORS } from "../../shared/tasks/gpu-scrub.ts";
import type { System } from "../system/system.ts";
import { DriverWedged } from "./gpu-tool.ts";

const JOURNAL = "/var/lib/muster/agent/gpu-scrub.json";
const WEDGED = "/var/lib/muster/agent/gpu-wedged.json";

/**
 * What a cleaning of GPUs has taken away from the host and must give back. The agent writes each entry before it takes the thing away, so that a
 * killed agent gives everything back at its next start.
 */
const ScrubJournal = z.strictObject({
  task_id: z.string(),
  /** The boot in which the cleaning began. */
  boot_id: z.string(),
  vendor: z.enum(GPU_VENDORS),
  /** The stopped services, in the order in which they were stopped. */
  services: z.array(z.string()),
  /** The unloaded kernel modules, in the order in which they were unloaded. */
  modules: z.array(z.string()),
  /** The PCI addresses of the GPUs whose persistence mode was enabled. */
  persistent: z.array(z.string()),
});
export type ScrubJournal = z.output<typeof ScrubJournal>;

/** Reads the journal of an unfinished cleaning, or null. Throws if the file is not readable, because services may be missing then. */
export async function readJournal(system: System): Promise<ScrubJournal | null> {
  const text = await system.read(JOURNAL);
  return text === null ? null : ScrubJournal.parse(JSON.parse(text));
}

export const writeJournal = (system: System, journal: ScrubJournal): Promise<void> =>
  system.write(JOURNAL, `${JSON.stringify(journal)}\n`, 0o600);

/** Removes the journal of a cleaning. The journal of another task, which began meanwhile, stays. */
export async function endJournal(system: System, journal: ScrubJournal): Promise<void> {
  if ((await readJournal(system))?.task_id === journal.task_id) await system.remove(JOURNAL);
}

const Wedged = z.object({ boot_id: z.string(), message: z.string() });

/** Writes that the driver hangs in this boot, so that the agent starts no other work on the GPUs before a reboot. */
export async function markWedged(system: System, error: Error): Promise<void> {
  const place = error instanceof DriverWedged ? error.where : {};
  const mark = { boot_id: await system.bootId(), message: error.message, ...place };
  await system.write(WEDGED, `${JSON.stringify(mark)}\n`, 0o600);
}

/** Says why the driver counts as hanging in this boot, or returns null. An unreadable mark counts as a mark of this boot. */
export async function wedgedInThisBoot(system: System): Promise<string | null> {
  const text = await system.read(WEDGED);
  if (text === null) return null;
  const mark = parsed(text);
  if (mark === null)
    return "The mark of a hanging GPU driver is not readable. Reboot the host, and remove the file gpu-wedged.json.";
  if (mark.boot_id === (await system.bootId())) return mark.message;
  await system.remove(WEDGED);
  return null;
}

function parsed(text: string): z.output<typeof Wedged> | null {
  try {
    return Wedged.parse(JSON.parse(text));
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof z.ZodError) return null;
    throw error;
  }
}
