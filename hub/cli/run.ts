import { parseArgs } from "node:util";
import { COMMON_FLAGS } from "./arguments.ts";
import type { Operation } from "./description.ts";
import { UsageError } from "./errors.ts";
import type { Io } from "./io.ts";
import { isOwn, isVerb } from "./program/verbs.ts";
import { refuseMistyped } from "./setting-names.ts";
import { endOf, endOfOperation } from "./statuses.ts";
import { shippedOperations } from "./table/shipped.ts";

const MOST_NEAR = 5;

interface Words {
  /** True for `muster help ...` and `muster ... --help`. */
  readonly help: boolean;
  /** The words of the command line without the word `help` and without flags. */
  readonly words: readonly string[];
  readonly values: Readonly<Record<string, unknown>>;
}

function wordsOf(argv: readonly string[]): Words {
  const options = { ...COMMON_FLAGS, output: { type: "string", short: "o" } } as const;
  const { values, positionals } = parseArgs({ args: [...argv], options, allowPositionals: true, strict: false });
  const [first] = positionals;
  const help = first === "help" || values["help"] === true;
  return { help, words: first === "help" ? positionals.slice(1) : positionals, values };
}

/** Runs a command of `muster`, and returns its exit status. */
export async function run(argv: readonly string[], io: Io): Promise<number> {
  const asked = wordsOf(argv);
  const [name] = asked.words;
  const ofProgram = name === undefined || isVerb(name);
  try {
    refuseMistyped(io.env);
    if (ofProgram) {
      const { helpOf, runProgram } = await import("./program/program.ts");
      return asked.help || name === undefined ? await helpOf(asked.words, asked.help, io) : await runProgram(argv, io);
    }
    return await runOther(name, argv, asked);
  } catch (error) {
    const [status, message] = ofProgram ? endOf(error) : endOfOperation(error);
    io.err(`${message.trimEnd()}\n`);
    return status;
  }
}

/** Runs a command with a parser of its own, or a command that calls one operation of the API. */
async function runOther(name: string, argv: readonly string[], asked: Words): Promise<number> {
  if (isOwn(name)) {
    const { runOwn } = await import("./own-commands.ts");
    return runOwn(name, argv, asked.help);
  }
  const { helpText, overviewText } = await import("./output.ts");
  const shipped = shippedOperations();
  const print = (text: string): number => {
    process.stdout.write(text);
    return 0;
  };
  if (name === "operations" && asked.help) return print(overviewText(shipped));
  const { operation, operations } = await operationOf(name, shipped, asked.values);
  if (argv[0] === "help") return print(helpText(operation));
  const { runOperation } = await import("./operation-command.ts");
  await runOperation(operation, argv.toSpliced(argv.indexOf(name), 1), operations);
  return 0;
}

/** A hub of a newer version may have an operation that this program's table lacks. */
async function operationOf(name: string, shipped: readonly Operation[], values: Words["values"]) {
  const found = shipped.find(({ command }) => command === name);
  if (found !== undefined) return { operation: found, operations: shipped };
  const { operationsOfHub } = await import("./newer-hub.ts");
  const operations = await operationsOfHub(values);
  const operation = operations.find(({ command }) => command === name);
  if (operation === undefined) throw new UsageError(unknownCommand(name, shipped));
  return { operation, operations };
}

/** The error for an unknown command suggests commands that contain all words of it, for example `create-maas-site-profile` for `create-profile`. */
function unknownCommand(name: string, operations: readonly Operation[]): string {
  const asked = name.split("-");
  const near = operations
    .map(({ command }) => command)
    .filter((command) => asked.every((word) => command.split("-").includes(word)));
  const advice = near.length === 0 ? "" : ` Did you mean ${near.slice(0, MOST_NEAR).join(", ")}?`;
  return `There is no command ${name}.${advice} See: muster help`;
}
