import { z } from "zod";
import { STATE_DIR } from "../config.ts";
import { type KernelFault, kernelFaultIn } from "../gpu/kernel-faults.ts";
import { messageOf } from "../message-of.ts";
import type { System } from "../system/system.ts";
import { judgeKernelFaults } from "./gpus.ts";
import { type Findings, notObserved, unreadable } from "./judged.ts";
import { judgeKernelLog, parseKernelLog } from "./kernel-log.ts";
import { type Probe, RHYTHM, TOOL_TIME } from "./probe.ts";

/** Where the last look at the kernel's log ended, so that a restart of the agent does not report old faults again. */
const PLACE_FILE = `${STATE_DIR}/kernel-log.json`;
const Place = z.strictObject({ boot_id: z.string().max(64), cursor: z.string().max(1024) });

async function readPlace(system: System): Promise<string | null> {
  try {
    const place = Place.parse(JSON.parse((await system.read(PLACE_FILE)) ?? "null"));
    return place.boot_id === (await system.bootId()) ? place.cursor : null;
  } catch {
    // Without a place, the look begins at the boot.
    return null;
  }
}

const JOURNAL = [
  "-k",
  "-b",
  "-p",
  "warning",
  "-o",
  "json",
  "--output-fields=MESSAGE",
  "--no-pager",
  "-q",
  "-n",
  "5000",
];

/** Reads what the kernel wrote since the look before. The agent's unit may not read the kernel's own buffer, so it asks the journal. */
export const kernelLogProbe = (): Probe => ({
  name: "kernel log",
  everyMs: RHYTHM.kernelLog,
  callsGpuDriver: false,
  look: async ({ system }) => {
    const cursor = await readPlace(system);
    const since = cursor === null ? [] : [`--after-cursor=${cursor}`];
    const ran = await system.attempt("journalctl", [...JOURNAL, ...since], TOOL_TIME);
    if (ran.kind === "missing") return { "health.kernel": notObserved(ran.message) };
    if (ran.kind === "hung" || ran.exitCode !== 0) {
      // A journal that was rotated away no longer has the entry of the cursor.
      await system.remove(PLACE_FILE);
      const said = ran.kind === "hung" ? "it did not end in time" : ran.stderr.slice(-200);
      return { "health.kernel": unreadable(`journalctl does not tell the kernel's log: ${said}`) };
    }
    try {
      const log = parseKernelLog(ran.stdout);
      if (log.cursor !== null) await keepPlace(system, log.cursor);
      return { ...judgeKernelLog(log.lines), ...(await gpuFaults(system, log.lines)) };
    } catch (error) {
      return { "health.kernel": unreadable(`The kernel's log is not readable: ${messageOf(error)}`) };
    }
  },
});

async function keepPlace(system: System, cursor: string): Promise<void> {
  await system.write(PLACE_FILE, JSON.stringify({ boot_id: await system.bootId(), cursor }), 0o600);
}

/** The kernel's log says something about the GPUs only on a host that has some. */
async function gpuFaults(system: System, lines: readonly string[]): Promise<Findings> {
  const vendors = [...new Set(((await system.pciGpus()) ?? []).map(({ vendor }) => vendor))];
  if (vendors.length === 0) return {};
  const faults: KernelFault[] = lines.flatMap((line) => vendors.flatMap((vendor) => kernelFaultIn(vendor, line) ?? []));
  return judgeKernelFaults(faults);
}
