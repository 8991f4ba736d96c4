import type { z } from "zod";

/** A kind of heavy or possibly hanging work, which runs in a worker process outside the agent's process (decision C6). */
export interface WorkKind<I extends z.ZodType = z.ZodType, R extends z.ZodType = z.ZodType> {
  /** The name of the kind of work, which the order to a worker process contains. */
  readonly kind: string;
  readonly input: I;
  readonly result: R;
  /** The memory limit of the worker process's systemd unit, in systemd's notation. */
  readonly memoryMax: string;
  /**
   * True if work of this kind may block in a driver or a disk, where no signal ends the process. On a host without systemd, the agent refuses work
   * that may block. On a host without systemd, work that cannot block runs as a child process, with a supervisor that enforces the deadline.
   */
  readonly mayBlock: boolean;
}

export const defineWork = <I extends z.ZodType, R extends z.ZodType>(kind: WorkKind<I, R>): WorkKind<I, R> => kind;

/** What the worker's program gives to the function `perform`, so that the work can learn of a stop and report progress. */
export interface WorkRun {
  /** The root of the host's file system, or a folder that stands for the host. */
  readonly root: string;
  /** Throws if the agent has asked the worker process to stop. Work without an `await` calls `throwIfStopped` often. */
  throwIfStopped(): void;
  /** The abort signal of the work, aborted when the agent asks the worker process to stop. */
  readonly signal: AbortSignal;
  /** Tells the agent how much of the work is done. The worker process writes the newest progress to disk at most once in a second. */
  progress(progress: WorkProgress): void;
}

/** The progress of a worker process: the present step, how many things it has done, and how many bytes. */
export interface WorkProgress {
  readonly step: string;
  readonly done: number;
  readonly bytes: number;
}

/**
 * The function `perform` that does the work of one kind. The worker's program parses the work's input with the schema `work.input` before it calls
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
