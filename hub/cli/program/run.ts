import type { Command } from "commander";
import type { Io } from "../io.ts";

/** One run of the program. A command of the program stores its exit status in the field `status` of its run. */
export interface Run {
  readonly io: Io;
  /** The words of the command line; null for the tree of all commands with all flags. */
  readonly words: readonly string[] | null;
  /** Makes the tree of all commands, with the code of all verbs. */
  readonly whole: () => Promise<Command>;
  status: number;
}
