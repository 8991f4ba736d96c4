import type { z } from "zod";

/** A kind of work that runs in a process of its own, outside the agent's process (decision C6). */
export interface WorkKind<I extends z.ZodType = z.ZodType, R extends z.ZodType = z.ZodType> {
  /** The name of the kind of work. The order of a worker names its kind. */
  readonly kind: string;
  readonly input: I;
  readonly result: R;
  /** The memory limit of the worker's systemd unit, in systemd's notation. */
  readonly memoryMax: string;
  /**
   * True if the work may block in a driver or a disk, where no signal ends it. Work that may block is refused on a host without systemd. Other work
   * runs there as a child process, with a supervisor that enforces the deadline.
   */
  readonly mayBlock: boolean;
}

export const defineWork = <I extends z.ZodType, R extends z.ZodType>(kind: WorkKind<I, R>): WorkKind<I, R> => kind;

/** What the worker's program tells the work, and what the work tells the agent. */
export interface WorkRun {
  /** The root of the host's file system, or a folder that stands for the host. */
  readonly root: string;
  /** Throws when the agent has asked the worker to stop. Work without an `await` calls `throwIfStopped` often. */
  throwIfStopped(): void;
  /** The signal that is aborted when the agent has asked the worker to stop. */
  readonly signal: AbortSignal;
  /** Tells the agent how far the work is. The worker writes the newest progress to disk at most once in a second. */
  progress(progress: WorkProgress): void;
}

/** How far a work is: the present step, how many things are done and how many bytes. */
export interface WorkProgress {
  readonly step: string;
  readonly done: number;
  readonly bytes: number;
}

/** The work of a kind. The worker's program parses the input with the kind's schema before it calls `perform`. */
export interface Performer<I extends z.ZodType = z.ZodType, R extends z.ZodType = z.ZodType> {
  readonly work: WorkKind<I, R>;
  perform(input: z.output<I>, run: WorkRun): Promise<z.input<R>>;
}

export const performer = <I extends z.ZodType, R extends z.ZodType>(
  work: WorkKind<I, R>,
  perform: (input: z.output<I>, run: WorkRun) => Promise<z.input<R>>,
): Performer => ({ work, perform: (input, run) => perform(work.input.parse(input), run) });
