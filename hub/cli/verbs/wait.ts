import type { Command } from "commander";
import { UsageError } from "../errors.ts";

import { NOUN_LIST } from "../nouns/index.ts";
import { addGeneral, type Flags } from "../program/flags.ts";
import { nounCommands } from "../program/noun-command.ts";
import type { Run } from "../program/run.ts";
import { durationOf } from "../wait/duration.ts";
import { goalOf, standardGoal } from "../wait/goal.ts";
import { waitFor } from "../wait/wait-for.ts";

const HELP = `
--for takes:
  status=VALUE            the status, or the field state
  FIELD=VALUE             any field, for example schedulable=true or location.rack=r7
  condition=TYPE[=VALUE]  a condition of a node, by default with the value True
  done                    the end of an operation or batch (the default for them)
  deleted                 the object is no longer there
Exit status: 0 all reached it, 1 none reached it, 7 the deadline passed and the work goes on, 8 some reached it.
`;

/** Adds to `muster wait` a sub-command for each kind of object of which the API can read a single object by its id. */
export function add(wait: Command, run: Run): void {
  const nouns = NOUN_LIST.filter(({ reads, parent }) => reads.length > 0 && parent === undefined);
  nounCommands(wait, nouns, run, (command, noun) => {
    command.argument("<names...>", "names or ids").addHelpText("after", HELP);
    command.option("--for <goal>", "the state to wait for", standardGoal(noun));
    command.option("--timeout <time>", "how long to wait, for example 90s, 30m or 2h", "6h");
    addGeneral(command).action(async (names: string[], flags: Flags) => {
      const goal = flags["for"];
      if (typeof goal !== "string")
        throw new UsageError(`Wait for what? Name it by --for, for example --for status=active.`);
      const deadlineMs = durationOf(String(flags["timeout"]), "--timeout");
      run.status = await waitFor({ noun, names, goal: goalOf(noun, goal), deadlineMs, flags, io: run.io });
    });
  });
}
