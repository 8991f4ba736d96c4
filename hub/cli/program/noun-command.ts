import type { Command } from "commander";
import type { Noun } from "../nouns/noun.ts";
import type { Run } from "./run.ts";

/** Adds the sub-command of a noun to a verb. */
export const nounCommand = (verb: Command, { plural, singular, short, about }: Noun): Command =>
  verb
    .command(plural)
    .aliases([singular, ...short].filter((name) => name !== plural))
    .summary(about)
    .description(about);

/**
 * Adds a sub-command for each noun to a verb. Only the sub-commands of the nouns that the command line names get their flags, because all flags of all
 * nouns would take longer to make than the rest of the command.
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
