import type { Command } from "commander";

export interface Flag {
  /** The spellings of the flag, for example `-o` and `--output`. */
  readonly names: readonly string[];
  /** The flag with its value as the help writes it. */
  readonly text: string;
  readonly about: string;
  readonly takesValue: boolean;
  readonly choices: readonly string[];
}

/** A command of the program with its sub-commands, for the completion scripts and the man page. */
export interface Branch {
  readonly name: string;
  readonly aliases: readonly string[];
  readonly about: string;
  readonly usage: string;
  readonly flags: readonly Flag[];
  readonly branches: readonly Branch[];
}

export function treeOf(command: Command): Branch {
  const help = command.createHelp();
  return {
    name: command.name(),
    aliases: command.aliases(),
    about: help.subcommandDescription(command),
    usage: help.commandUsage(command),
    flags: help.visibleOptions(command).map((option) => ({
      names: [option.short, option.long].flatMap((name) => name ?? []),
      text: option.flags,
      about: option.description,
      takesValue: option.required || option.optional,
      choices: option.argChoices ?? [],
    })),
    branches: help.visibleCommands(command).map(treeOf),
  };
}

/** A command and the words of the command line that lead to it, without the name of the program. */
export interface Place {
  readonly path: readonly string[];
  readonly branch: Branch;
}

export const placesOf = (branch: Branch, path: readonly string[] = []): Place[] => [
  { path, branch },
  ...branch.branches.flatMap((one) => placesOf(one, [...path, one.name])),
];
