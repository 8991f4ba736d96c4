/** What a command of `muster` reads from and writes to. A test runs commands in its own process with an `Io` of its own. */
export interface Io {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Writes an answer to standard output. */
  readonly out: (text: string) => void;
  /** Writes a note, a progress or an error to standard error. */
  readonly err: (text: string) => void;
  /** True if a person reads standard output on a terminal. */
  readonly isTerminal: boolean;
  readonly now: () => number;
  /** The signal of the operator's Ctrl-C. A command that never calls `interrupted` ends at once after Ctrl-C, as every program does. */
  readonly interrupted: () => AbortSignal;
}

let interrupted: AbortController | null = null;

export const processIo = (): Io => ({
  env: process.env,
  out: (text) => void process.stdout.write(text),
  err: (text) => void process.stderr.write(text),
  isTerminal: process.stdout.isTTY === true,
  now: Date.now,
  interrupted: () => {
    if (interrupted === null) {
      const controller = new AbortController();
      process.once("SIGINT", () => controller.abort());
      interrupted = controller;
    }
    return interrupted.signal;
  },
});
