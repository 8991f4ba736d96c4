import type { z } from "zod";

export interface WorkKind<I extends z.ZodType = z.ZodType, R extends z.ZodType = z.ZodType> {
  readonly kind: string;
  readonly input: I;
  readonly result: R;
  /** The memory limit of the worker process's systemd unit, in systemd's notation. */
  readonly memoryMax: string;
  /**
   * On a host without systemd, the agent refuses work that may block in a driver or a disk, where no signal ends a process. On a host without
   * systemd, work that cannot block runs as a child process, with a supervisor that enforces the deadline.
   */
  readonly mayBlock: boolean;
}

export const defineWork = <I extends z.ZodType, R extends z.ZodType>(kind: WorkKind<I, R>): WorkKind<I, R> => kind;

export interface WorkRun {
  readonly root: string;
  /** Throws if the agent has asked the worker process to stop. Work that never waits by `await` calls `throwIfStopped` often. */
  throwIfStopped(): void;
  /** A signal that is aborted when the agent asks the worker process to stop. */
  readonly signal: AbortSignal;
  /** The worker process writes the newest progress to disk at most once in a second. */
  progress(progress: WorkProgress): void;
}

export interface WorkProgress {
  readonly step: string;
  readonly done: number;
  readonly bytes: number;
}

/**
 * The function that performs one kind of work in a worker process. The worker program parses the work's input with `work.input` before it calls
 * `perform`.
 */
export interface Performer<I extends z.ZodType = z.ZodType, R extends z.ZodType = z.ZodType> {
  readonly work: WorkKind<I, R>;
  perform(input: z.output<I>, run: WorkRun): Promise<z.input<R>>;
}

export const performer = <I extends z.ZodType, R extends z.ZodType>(
  work: WorkKind<I, R>,
  perform: (input: z.output<I>, run: WorkRun) => Promise<z.input<R>>,
): Performer => ({ work, perform: (input, run) => perform(work.input.parse(input), run) });
