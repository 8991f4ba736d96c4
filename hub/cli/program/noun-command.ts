import type { Command } from "commander";
import type { Noun } from "../nouns/noun.ts";

/** Adds the sub-command of a noun to a verb. */
export const nounCommand = (verb: Command, { plural, singular, short, about }: Noun): Command =>
  verb
    .command(plural)
    .aliases([singular, ...short].filter((name) => name !== plural))
    .summary(about)
    .description(about);
