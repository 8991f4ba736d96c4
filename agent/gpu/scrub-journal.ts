import { z } from "zod";
import { GPU_VENDORS } from "../../shared/tasks/gpu-scrub.ts";
import type { System } from "../system/system.ts";
import { DriverWedged } from "./gpu-tool.ts";
import { SCRUB_JOURNAL } from "./scrub-journal-path.ts";

const WEDGED = "/var/lib/muster/agent/gpu-wedged.json";

/** The agent writes a journal entry before each stop of a service or kernel module, so that everything can be restored after a kill of the agent. */
const ScrubJournal = z.strictObject({
  task_id: z.string(),
  /** The id of the boot in which the GPU cleaning began. */
  boot_id: z.string(),
  vendor: z.enum(GPU_VENDORS),
  services: z.array(z.string()),
  modules: z.array(z.string()),
  persistent: z.array(z.string()),
});
export type ScrubJournal = z.output<typeof ScrubJournal>;

/**
 * Reads the journal of an unfinished GPU cleaning, or returns null if the host has no such journal. Throws if the journal of the GPU cleaning is
 * unreadable, because the cleaning may have left services of the host stopped.
 */
export async function readJournal(system: System): Promise<ScrubJournal | null> {
  const text = await system.read(SCRUB_JOURNAL);
  return text === null ? null : ScrubJournal.parse(JSON.parse(text));
}

export const writeJournal = (system: System, journal: ScrubJournal): Promise<void> =>
  system.write(SCRUB_JOURNAL, `${JSON.stringify(journal)}\n`, 0o600);

/** Removes a GPU cleaning's journal, unless the journal already belongs to another task. */
export async function endJournal(system: System, journal: ScrubJournal): Promise<void> {
  if ((await readJournal(system))?.task_id === journal.task_id) await system.remove(SCRUB_JOURNAL);
}

const Wedged = z.object({ boot_id: z.string(), message: z.string() });

/** The agent records on disk that the GPU driver hangs, so that it starts no other work on the GPUs before a reboot. */
export async function markWedged(system: System, error: Error): Promise<void> {
  const place = error instanceof DriverWedged ? error.where : {};
  const mark = { boot_id: await system.bootId(), message: error.message, ...place };
  await system.write(WEDGED, `${JSON.stringify(mark)}\n`, 0o600);
}

/**
 * Returns why the GPU driver counts as hanging in this boot, or null. If the file gpu-wedged.json is unreadable, the GPU driver counts as hanging.
 */
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
