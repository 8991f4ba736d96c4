import type { Io } from "../io.ts";

/** One run of the program. A command of the program reports its exit status to its run. */
export interface Run {
  readonly io: Io;
  status: number;
}
