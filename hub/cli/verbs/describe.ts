import type { Command } from "commander";
import { describeBatch, hostsOf } from "../describe/batch.ts";
import { describeNode } from "../describe/node.ts";
import { describeOperation } from "../describe/operation.ts";
import { allFacts, type Described, sectionsText } from "../describe/section.ts";
import { describeSite } from "../describe/site.ts";
import { Hub, type Item } from "../hub.ts";
import { NOUN_LIST } from "../nouns/index.ts";
import type { Noun } from "../nouns/noun.ts";
import { hasColours } from "../output/print.ts";
import { addGeneral, addPrinting, type Flags } from "../program/flags.ts";
import { nounCommands } from "../program/noun-command.ts";
import type { Run } from "../program/run.ts";
import { readOne } from "./read.ts";

type Describe = (hub: Hub, item: Item) => Promise<Described> | Described;

/** The kinds of objects that `muster describe` shows by functions of their own; for every other kind it lists the object's fields. */
const OWN: Readonly<Record<string, Describe>> = {
  nodes: describeNode,
  onboardings: (_, item) => describeOperation("Onboarding", item),
  decommissions: (_, item) => describeOperation("Decommission", item),
  operations: (_, item) => describeOperation("onboarding_id" in item ? "Onboarding" : "Decommission", item),
  sites: describeSite,
  batches: async (hub, item) => describeBatch(item, await hostsOf(hub, String(item["batch_id"]))),
};

/** Adds to `muster describe` a sub-command for each kind of object. */
export function add(describe: Command, run: Run): void {
  nounCommands(describe, NOUN_LIST, run, (command, noun) => {
    command.argument("<name>", `the name or id of the ${noun.singular}`);
    const { parent } = noun;
    if (parent !== undefined) command.option(`--${parent.flag} <name>`, `the ${parent.flag} of the ${noun.singular}`);
    addPrinting(command, ["text", "json", "yaml"]);
    addGeneral(command).action((name: string, flags: Flags) => describeOne(noun, name, flags, run));
  });
}

async function describeOne(noun: Noun, name: string, flags: Flags, { io }: Run): Promise<void> {
  const hub = await Hub.open(flags, io);
  const item = await readOne(hub, noun, name, flags);
  const describe = OWN[noun.plural] ?? ((_: Hub, one: Item) => plainDescription(noun, one));
  const { sections, answer } = await describe(hub, item);
  if (flags["output"] === "json") return io.out(`${JSON.stringify(answer, null, 2)}\n`);
  if (flags["output"] === "yaml") {
    const { stringify } = await import("yaml");
    return io.out(stringify(answer, { aliasDuplicateObjects: false }));
  }
  io.out(sectionsText(sections, { colours: hasColours(flags["color"], io), now: io.isTerminal ? io.now() : null }));
}

const plainDescription = ({ singular }: Noun, item: Item): Described => ({
  sections: [{ title: singular.charAt(0).toUpperCase() + singular.slice(1), facts: allFacts(item) }],
  answer: item,
});
