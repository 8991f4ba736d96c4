import { isDeepStrictEqual } from "node:util";
import { z } from "zod";
import { NOT_OBSERVED } from "../../shared/condition-types.ts";
import { STATE_DIR } from "../config.ts";
import { readResets } from "../gpu/gpu-resets.ts";
import { messageOf } from "../message-of.ts";
import type { System } from "../system/system.ts";
import { judgeKernelFaults } from "./gpus.ts";
import { type Findings, type Judged, notObserved, unreadable } from "./judged.ts";
import { judgeKernelLog, type KernelLine, type KernelLog, parseKernelLog } from "./kernel-log.ts";
import { type Probe, RHYTHM, TOOL_TIME } from "./probe.ts";
import { faultsIn, MOST_FAULTS, type StandingFault, standingFaults } from "./standing-faults.ts";

/**
 * The place in the kernel's log at which the last check ended, and the grave GPU faults that the log reports up to this place, so that a restart of
 * the agent forgets no fault.
 */
const LOG_FILE = `${STATE_DIR}/kernel-log.json`;
const LogFile = z.strictObject({
  boot_id: z.string().max(64),
  cursor: z.string().max(1024).nullable(),
  faults: z
    .array(
      z.strictObject({
        pci: z.string().max(64).nullable(),
        xid: z.number().nullable(),
        text: z.string().max(1000),
        atUs: z.number().nullable(),
      }),
    )
    .max(MOST_FAULTS),
});

interface Known {
  readonly cursor: string | null;
  readonly faults: readonly StandingFault[];
}

async function readKnown(system: System): Promise<Known> {
  try {
    const file = LogFile.parse(JSON.parse((await system.read(LOG_FILE)) ?? "null"));
    if (file.boot_id === (await system.bootId())) return { cursor: file.cursor, faults: file.faults };
  } catch {
    // If the file `kernel-log.json` is unreadable, the probe reads the kernel's log of the whole boot, and finds the faults again.
  }
  return { cursor: null, faults: [] };
}

async function keepKnown(system: System, { cursor, faults }: Known): Promise<void> {
  await system.write(LOG_FILE, JSON.stringify({ boot_id: await system.bootId(), cursor, faults }), 0o600);
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

/**
 * Reads the entries of the kernel's log that the systemd journal holds after the cursor. The agent reads the kernel's log from the journal, because
 * the agent's systemd unit may not read the kernel's own buffer.
 */
async function readLog(system: System, cursor: string | null): Promise<KernelLog | Judged> {
  const since = cursor === null ? [] : [`--after-cursor=${cursor}`];
  const ran = await system.attempt("journalctl", [...JOURNAL, ...since], TOOL_TIME);
  if (ran.kind === "missing") return notObserved(ran.message);
  if (ran.kind === "hung" || ran.exitCode !== 0) {
    const said = ran.kind === "hung" ? "it did not end in time" : ran.stderr.slice(-200);
    return unreadable(`journalctl does not tell the kernel's log: ${said}`);
  }
  try {
    return parseKernelLog(ran.stdout);
  } catch (error) {
    return unreadable(`The kernel's log is not readable: ${messageOf(error)}`);
  }
}

/**
 * A host without GPUs and without known GPU faults gets no GPU condition from the kernel's log. A known GPU fault leads to a GPU condition even if
 * the PCI bus lists no GPU, because a GPU may have left the bus.
 */
async function judgeFaults(
  system: System,
  standing: readonly StandingFault[],
  lines: readonly KernelLine[],
): Promise<Findings> {
  if (standing.length === 0 && ((await system.pciGpus()) ?? []).length === 0) return {};
  return judgeKernelFaults(standing, faultsIn(lines));
}

/** Reads what the kernel has logged since the previous check. */
export const kernelLogProbe = (): Probe => ({
  name: "kernel log",
  everyMs: RHYTHM.kernelLog,
  callsGpuDriver: false,
  look: async ({ system }) => {
    const known = await readKnown(system);
    const log = await readLog(system, known.cursor);
    if ("status" in log) {
      // If journald has deleted the entry of the stored cursor, journalctl fails, so the next check begins without a cursor.
      if (known.cursor !== null) await keepKnown(system, { ...known, cursor: null });
      const standing = standingFaults(known.faults, [], await readResets(system));
      return { ...(standing.length > 0 ? judgeKernelFaults(standing, []) : {}), "health.kernel": log };
    }
    const faults = standingFaults(known.faults, log.lines, await readResets(system));
    const now: Known = { cursor: log.cursor ?? known.cursor, faults };
    if (!isDeepStrictEqual(now, known)) await keepKnown(system, now);
    return { ...judgeKernelLog(log.lines), ...(await judgeFaults(system, faults, log.lines)) };
  },
});

/**
 * Checks at once for grave GPU faults of this boot, and leaves the stored place in the kernel's log unchanged, so that `kernelLogProbe` still reads
 * the same lines.
 */
export const gpuFaultsProbe = (): Probe => ({
  name: "gpu faults",
  everyMs: RHYTHM.kernelLog,
  callsGpuDriver: false,
  look: async ({ system }) => {
    const known = await readKnown(system);
    const log = await readLog(system, known.cursor);
    const lines = "status" in log ? [] : log.lines;
    const findings = await judgeFaults(system, standingFaults(known.faults, lines, await readResets(system)), lines);
    const gpu = findings["health.gpu"];
    if (gpu === undefined) return {};
    return { "health.gpu": "status" in log && log.reason !== NOT_OBSERVED && gpu.status === "True" ? log : gpu };
  },
});
