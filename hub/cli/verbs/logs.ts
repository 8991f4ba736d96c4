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
import { Readings } from "../wait/readings.ts";
import { readOne } from "./read.ts";

/** The kinds of objects that have a history, in the order of the help. */
const WITH_HISTORY: readonly Noun[] = [NOUNS.nodes, NOUNS.onboardings, NOUNS.decommissions, NOUNS.operations];
const MOST_LINES = 200;
const AT_MOST_MS = 3_600_000;

/** Adds to `muster logs` a sub-command for each kind of object that has a history. */
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
  const tell = (entries: readonly Item[]): void => {
    for (const entry of entries) io.out(lineOf(entry, io.isTerminal ? io.now() : null));
  };
  const read = (limit: number, isSeen: IsSeen): Promise<readonly Item[]> =>
    noun === NOUNS.nodes ? ofNode(hub, id, flags, { limit, isSeen }) : ofOperation(hub, noun, id);
  if (flags["follow"] !== true) {
    tell((await read(tail, () => true)).slice(-tail));
    return STATUS.done;
  }
  const interrupted = io.interrupted();
  const changes = await Changes.follow(hub, noun.events, interrupted);
  const readings = new Readings(io, true);
  // With `--follow`, only the last `tail` entries from before the command are shown; older entries count as seen, and are not shown later.
  let seen: Set<string> | null = null;
  while (!interrupted.aborted) {
    const before: ReadonlySet<string> | null = seen;
    const isSeen: IsSeen = (entry) => before === null || before.has(JSON.stringify(entry));
    const [entries] = (await readings.all([read(MOST_LINES, isSeen)])) ?? [];
    if (entries !== undefined) {
      tell(before === null ? entries.slice(-tail) : entries.filter((entry) => !isSeen(entry)));
      seen = new Set([...(before ?? []), ...entries.map((entry) => JSON.stringify(entry))]);
    }
    await changes.next(readings.pauseMs(AT_MOST_MS), interrupted);
  }
  return STATUS.interrupted;
}

type IsSeen = (entry: Item) => boolean;

/**
 * Returns the newest entries of a node's history over all its operations, oldest first. Reads pages of the history from the newest back, until a page
 * has an entry that the command has already read.
 */
async function ofNode(
  hub: Hub,
  id: string,
  flags: Flags,
  { limit, isSeen }: { readonly limit: number; readonly isSeen: IsSeen },
): Promise<readonly Item[]> {
  const kind: Record<string, string> = typeof flags["kind"] === "string" ? { kind: flags["kind"] } : {};
  const query: Record<string, string> = { order: "newest", limit: String(limit), ...kind };
  const entries: Item[] = [];
  for (;;) {
    const answer = await hub.one("exportNodeLifecycle", { words: { id }, query });
    const items = answer["items"] as Item[];
    entries.push(...items);
    const next = answer["next_cursor"];
    if (typeof next !== "string" || items.length === 0 || items.some(isSeen)) return entries.toReversed();
    query["cursor"] = next;
  }
}

async function ofOperation(hub: Hub, noun: Noun, id: string): Promise<readonly Item[]> {
  const { events } = (await readOne(hub, noun, id)) as { events: Item[] };
  return events.toSorted((a, b) => Date.parse(String(a["occurred_at"])) - Date.parse(String(b["occurred_at"])));
}

function lineOf(entry: Item, now: number | null): string {
  const time = String(entry["at"] ?? entry["occurred_at"]);
  const words = [entry["kind"], entry["what"] ?? entry["stage"], entry["status"], entry["message"], entry["by"]];
  const told = words.filter((word) => word !== null && word !== undefined && word !== "").map(cellOf);
  return `${now === null ? time : ageOf(time, now).padStart(4)}  ${told.join("  ")}\n`;
}
