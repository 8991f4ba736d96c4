import type { Command } from "commander";
import type { Io } from "../io.ts";

/** One run of the program. A command of the program reports its exit status to its run. */
export interface Run {
  readonly io: Io;
  /** Makes the tree of all commands, with the code of all verbs. */
  readonly whole: () => Promise<Command>;
  status: number;
}
