import type { Io } from "../../hub/cli/io.ts";
import { run } from "../../hub/cli/run.ts";

export interface Ended {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Runs verbs of the program `muster` in the process of the test, because each process would cost a second of a loaded machine. Commands of the API's
 * operations write to the process's own output and need `commandLine`.
 */
export const musterHere =
  (env: Readonly<Record<string, string>>, rest: Partial<Io> = {}) =>
  async (line: string | readonly string[]): Promise<Ended> => {
    const stdout: string[] = [];
    const stderr: string[] = [];
    const io: Io = {
      env,
      out: (text) => void stdout.push(text),
      err: (text) => void stderr.push(text),
      isTerminal: false,
      now: Date.now,
      interrupted: () => new AbortController().signal,
      ...rest,
    };
    const status = await run(typeof line === "string" ? line.split(" ") : line, io);
    return { status, stdout: stdout.join(""), stderr: stderr.join("") };
  };
