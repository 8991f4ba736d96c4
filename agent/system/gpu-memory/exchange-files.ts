import { join } from "node:path";
import type { z } from "zod";
import {
  ANSWER_FILE,
  CHALLENGE_FILE,
  COMMITMENT_FILE,
  END_FILE,
  GpuChallenge,
  RELEASE_FILE,
  WORKER_FILE,
  type WorkerProcess,
} from "../../gpu-memory/exchange.ts";
import type { Exchange } from "../../gpu-memory/overwrite.ts";
import { isPresent, readText, writeAtomically } from "../files.ts";
import { kernelBootId, readProcess } from "../workers/processes.ts";

/**
 * The worker process's part of the file exchange between the agent and the worker process of a GPU. A file that the agent and the worker process
 * exchange appears completely or not at all, so nobody reads half a file.
 */
export function exchangeIn(folder: string): Exchange & { begin(): Promise<void> } {
  const write = (name: string, value: unknown) =>
    writeAtomically(join(folder, name), `${JSON.stringify(value)}\n`, 0o600);
  const read = async <T>(name: string, schema: z.ZodType<T>): Promise<T | null> => {
    const text = await readText(join(folder, name));
    return text === null ? null : schema.parse(JSON.parse(text));
  };
  return {
    /** Stores the pid and start time of the worker process, so that a later agent can tell whether the process still holds GPU memory. */
    begin: async () => write(WORKER_FILE, ownProcess()),
    commit: (commitment) => write(COMMITMENT_FILE, commitment),
    challenge: () => read(CHALLENGE_FILE, GpuChallenge),
    answer: (answers) => write(ANSWER_FILE, answers),
    release: (release) => write(RELEASE_FILE, release),
    mustEnd: () => isPresent(join(folder, END_FILE)),
  };
}

function ownProcess(): WorkerProcess {
  const own = readProcess(process.pid);
  if (own === null) throw new Error("Linux does not list this process in /proc.");
  return { pid: own.pid, start_ticks: own.startTicks, boot_id: kernelBootId() };
}
