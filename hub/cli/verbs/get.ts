import type { Command } from "commander";
import { Hub, type Item } from "../hub.ts";
import type { Io } from "../io.ts";
import { NOUN_LIST } from "../nouns/index.ts";
import type { Noun } from "../nouns/noun.ts";
import { plain } from "../output/plain.ts";
import { lineWise, printingOf, textOf } from "../output/print.ts";
import { addGeneral, type Flags } from "../program/flags.ts";
import { nounCommands } from "../program/noun-command.ts";
import type { Run } from "../program/run.ts";
import { endOf, STATUS, type Status } from "../statuses.ts";
import { readList, readOne } from "./read.ts";
import { addWhich } from "./which.ts";

/** Adds to `muster get` a sub-command for each kind of object, with the filters of its list as flags. */
export function add(get: Command, run: Run): void {
  nounCommands(get, NOUN_LIST, run, (command, noun) => {
    addWhich(command, noun)
      .option("--all", "all pages of the list")
      .option("-w, --watch", "go on with each change until Ctrl-C, as the verb watch does");
    addGeneral(command).action(async (names: string[], flags: Flags) => {
      run.status = await show(noun, names, flags, run.io);
    });
  });
}

async function show(noun: Noun, names: readonly string[], flags: Flags, io: Io): Promise<Status> {
  const printing = printingOf(flags, io);
  const hub = await Hub.open(flags, io);
  if (flags["watch"] === true) {
    const { watchList } = await import("../wait/watch-list.ts");
    return watchList({ noun, names, flags, printing: lineWise(printing), hub, io });
  }
  if (names.length > 0) return getNamed(noun, names, { flags, hub, io });
  const { items, answer, more } = await readList(hub, noun, flags);
  io.out(await textOf({ noun, items, answer }, printing, hub, io));
  if (more) io.err(`There are more ${noun.plural}. Show all by --all, or fewer by a filter.\n`);
  return STATUS.done;
}

/** Shows the objects that the operator named, and says for each name without an object why the object was not found. */
async function getNamed(
  noun: Noun,
  names: readonly string[],
  { flags, hub, io }: { readonly flags: Flags; readonly hub: Hub; readonly io: Io },
): Promise<Status> {
  const items: Item[] = [];
  let status: Status = STATUS.done;
  for (const name of names) {
    try {
      items.push(await readOne(hub, noun, name, flags));
    } catch (error) {
      const [one, message] = endOf(error);
      if (one !== STATUS.notFound || names.length === 1) throw error;
      status = one;
      io.err(plain(`${message.trimEnd()}\n`));
    }
  }
  const answer = names.length === 1 ? items[0] : { items };
  if (items.length > 0) io.out(await textOf({ noun, items, answer }, printingOf(flags, io), hub, io));
  return status;
}
