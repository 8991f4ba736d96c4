import type { Command } from "commander";
import type { Noun } from "../nouns/noun.ts";
import type { Run } from "./run.ts";

/** Adds to a verb, such as `get`, the sub-command of one kind of object, such as `nodes`. */
export const nounCommand = (verb: Command, { plural, singular, short, about }: Noun): Command =>
  verb
    .command(plural)
    .aliases([singular, ...short].filter((name) => name !== plural))
    .summary(about)
    .description(about);

/**
 * Adds to a verb, such as `get`, a sub-command for each kind of object, such as `nodes`. Only the sub-commands that the command line names get their
 * flags, because the flags of all sub-commands would take longer to make than the rest of the command.
 */
export function nounCommands(
  verb: Command,
  nouns: readonly Noun[],
  { words }: Pick<Run, "words">,
  fill: (command: Command, noun: Noun) => void,
): void {
  for (const noun of nouns) {
    const command = nounCommand(verb, noun);
    const { plural, singular, short } = noun;
    if (words === null || [plural, singular, ...short].some((name) => words.includes(name))) fill(command, noun);
  }
}
