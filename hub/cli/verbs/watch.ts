import type { Command } from "commander";
import { Hub } from "../hub.ts";
import { NOUN_LIST } from "../nouns/index.ts";
import { lineWise, printingOf } from "../output/print.ts";
import { addGeneral, type Flags } from "../program/flags.ts";
import { nounCommands } from "../program/noun-command.ts";
import type { Run } from "../program/run.ts";
import { watchList } from "../wait/watch-list.ts";
import { addWhich } from "./which.ts";

/** Adds to `muster watch` a sub-command for each kind of object, with the filters of its list as flags. */
export function add(watch: Command, run: Run): void {
  nounCommands(watch, NOUN_LIST, run, (command, noun) => {
    addGeneral(addWhich(command, noun)).action(async (names: string[], flags: Flags) => {
      const printing = printingOf(flags, run.io);
      const hub = await Hub.open(flags, run.io);
      run.status = await watchList({ noun, names, flags, printing: lineWise(printing), hub, io: run.io });
    });
  });
}
