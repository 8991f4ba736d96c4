import { Command, CommanderError } from "commander";
import type { Io } from "../io.ts";
import { STATUS } from "../statuses.ts";
import type { Run } from "./run.ts";
import { isVerb, OWN, VERB_NAMES, VERBS } from "./verbs.ts";

const MORE = `
muster help <command>      what a command takes, for example: muster help get nodes
muster help operations     the commands of the API's operations, for example list-nodes and create-onboarding
`;

/** Makes the tree of commands. Makes the tree of commands of the program `muster`. */
async function programOf(run: Run, only?: string): Promise<Command> {
  const { io } = run;
  const program = new Command("muster")
    .usage("<command> [arguments] [--flags]")
    .description("Muster brings bare-metal GPU hosts into service, keeps them there and takes them out again.")
    .helpCommand(false)
    .addHelpText("after", MORE)
    .exitOverride()
    .configureOutput({ writeOut: io.out, writeErr: io.err });
  for (const name of VERB_NAMES) {
    const { about, group, load } = VERBS[name];
    const command = program.command(name).summary(about).description(about).helpGroup(group).helpCommand(false);
    if (only === undefined || only === name) (await load())(command, run);
  }
  for (const [name, about] of Object.entries(OWN))
    program
      .command(name)
      .summary(about)
      .description(about)
      .helpGroup("Also:")
      .allowUnknownOption()
      .argument("[words...]");
  return program;
}

function runOf(io: Io, words: readonly string[]): Run {
  const run: Run = { io, words, status: STATUS.done, whole: () => programOf({ ...run, words: null }) };
  return run;
}

/** Runs the verb that the command line names, and returns its exit status. */
export async function runProgram(argv: readonly string[], io: Io): Promise<number> {
  const run = runOf(io, argv);
  const program = await programOf(run, argv.find(isVerb));
  try {
    await program.parseAsync([...argv], { from: "user" });
  } catch (error) {
    // The library commander has already written what is wrong with the command line.
    if (error instanceof CommanderError) return error.exitCode === 0 ? STATUS.done : STATUS.usage;
    throw error;
  }
  return run.status;
}

/** Writes the help of the program or of a command. A command line without a command is a mistake, which gets the same help on standard error. */
export async function helpOf(words: readonly string[], asked: boolean, io: Io): Promise<number> {
  let command = await programOf(runOf(io, words), words[0] ?? "");
  for (const word of words) {
    const next = command.commands.find((one) => one.name() === word || one.aliases().includes(word));
    if (next === undefined) break;
    command = next;
  }
  if (asked) command.outputHelp();
  else command.outputHelp({ error: true });
  return asked ? STATUS.done : STATUS.usage;
}
