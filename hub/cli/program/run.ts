import type { Command } from "commander";
import type { Io } from "../io.ts";

/** One run of the program. A command stores its exit status in the field `status` of the run. */
export interface Run {
  readonly io: Io;
  /** The words of the command line; null if the run only makes the tree of all commands with all flags, for example for completion. */
  readonly words: readonly string[] | null;
  /** Makes the tree of all commands, with the code of all verbs. */
  readonly whole: () => Promise<Command>;
  status: number;
}
