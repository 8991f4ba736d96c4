import type { Command } from "commander";
import type { Noun } from "../nouns/noun.ts";
import { addFilter, addPrinting } from "../program/flags.ts";
import { filtersOf } from "./read.ts";

/** Adds the arguments and flags of a command that lists objects: names, filters and output formats. */
export function addWhich(command: Command, noun: Noun): Command {
  command.argument("[names...]", `names or ids; without them, the list of ${noun.plural}`);
  command.optionsGroup("Which:");
  const { parent } = noun;
  if (parent !== undefined) command.option(`--${parent.flag} <name>`, `the ${parent.flag} of the ${noun.plural}`);
  for (const field of filtersOf(noun)) addFilter(command, field);
  return addPrinting(command)
    .option("--columns <fields>", "the fields to show, separated by commas, for example hostname,location.rack")
    .option("--no-headers", "leave out the line of headers");
}
