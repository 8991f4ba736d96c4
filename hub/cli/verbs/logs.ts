import type { Command } from "commander";
import { Changes } from "../changes.ts";
import { UsageError } from "../errors.ts";
import { Hub, type Item } from "../hub.ts";
import { NOUNS } from "../nouns/index.ts";
import type { Noun } from "../nouns/noun.ts";
import { ageOf, cellOf } from "../output/cells.ts";
import { addGeneral, type Flags } from "../program/flags.ts";
import { nounCommands } from "../program/noun-command.ts";
import type { Run } from "../program/run.ts";
import { STATUS, type Status } from "../statuses.ts";
import { readOne } from "./read.ts";

/** The nouns with a history, in the order of the help. */
const WITH_HISTORY: readonly Noun[] = [NOUNS.nodes, NOUNS.onboardings, NOUNS.decommissions, NOUNS.operations];
const MOST_LINES = 200;
const AT_MOST_MS = 3_600_000;

/** Adds a sub-command for each noun with a history. */
export function add(logs: Command, run: Run): void {
  nounCommands(logs, WITH_HISTORY, run, (command, noun) => {
    command.argument("<name>", `the name or id of the ${noun.singular}`);
    command.option("--tail <number>", `show so many of the last lines, at most ${MOST_LINES}`, "50");
    if (noun === NOUNS.nodes)
      command.option(
        "--kind <kinds>",
        "kinds of entries, separated by commas: onboarding, decommission, allocation, event, record",
      );
    command.option("-f, --follow", "go on with each new line until Ctrl-C");
    addGeneral(command).action(async (name: string, flags: Flags) => {
      run.status = await show(noun, name, flags, run);
    });
  });
}

async function show(noun: Noun, name: string, flags: Flags, { io }: Run): Promise<Status> {
  const tail = Number(flags["tail"]);
  if (!Number.isInteger(tail) || tail < 1 || tail > MOST_LINES)
    throw new UsageError(`--tail takes a number from 1 to ${MOST_LINES}.`);
  const hub = await Hub.open(flags, io);
  const object = await readOne(hub, noun, name, flags);
  const id = String(object[noun.id]);
  const seen = new Set<string>();
  const tell = async (): Promise<void> => {
    const entries = noun === NOUNS.nodes ? await ofNode(hub, id, flags, tail) : await ofOperation(hub, noun, id, tail);
    for (const entry of entries) {
      const line = JSON.stringify(entry);
      if (seen.has(line)) continue;
      seen.add(line);
      io.out(lineOf(entry, io.isTerminal ? io.now() : null));
    }
  };
  if (flags["follow"] !== true) {
    await tell();
    return STATUS.done;
  }
  const interrupted = io.interrupted();
  const changes = await Changes.follow(hub, noun.events, interrupted);
  while (!interrupted.aborted) {
    await tell();
    await changes.next(AT_MOST_MS, interrupted);
  }
  return STATUS.interrupted;
}

/** The history of a node over all its operations, oldest first. */
async function ofNode(hub: Hub, id: string, flags: Flags, tail: number): Promise<readonly Item[]> {
  const kind: Record<string, string> = typeof flags["kind"] === "string" ? { kind: flags["kind"] } : {};
  const query = { order: "newest", limit: String(tail), ...kind };
  const { items } = (await hub.one("exportNodeLifecycle", { words: { id }, query })) as { items: Item[] };
  return items.toReversed();
}

async function ofOperation(hub: Hub, noun: Noun, id: string, tail: number): Promise<readonly Item[]> {
  const { events } = (await readOne(hub, noun, id)) as { events: Item[] };
  const order = events.toSorted((a, b) => Date.parse(String(a["occurred_at"])) - Date.parse(String(b["occurred_at"])));
  return order.slice(-tail);
}

function lineOf(entry: Item, now: number | null): string {
  const time = String(entry["at"] ?? entry["occurred_at"]);
  const words = [entry["kind"], entry["what"] ?? entry["stage"], entry["status"], entry["message"], entry["by"]];
  const told = words.filter((word) => word !== null && word !== undefined && word !== "").map(cellOf);
  return `${now === null ? time : ageOf(time, now).padStart(4)}  ${told.join("  ")}\n`;
}
