import { Changes } from "../changes.ts";
import type { Hub, Item } from "../hub.ts";
import type { Io } from "../io.ts";
import type { Noun } from "../nouns/noun.ts";
import { plain } from "../output/plain.ts";
import { type Printing, textOf } from "../output/print.ts";
import type { Flags } from "../program/flags.ts";
import { STATUS, type Status } from "../statuses.ts";
import { readList, readOne } from "../verbs/read.ts";
import { Readings } from "./readings.ts";

interface Watch {
  readonly noun: Noun;
  readonly names: readonly string[];
  readonly flags: Flags;
  readonly printing: Printing;
  readonly hub: Hub;
  readonly io: Io;
}

/** The longest time in milliseconds after which `muster watch` reads the list again if no event comes. */
const AT_MOST_MS = 3_600_000;

/**
 * Shows objects, and then a line for each object that is new or has changed, until Ctrl-C. The command follows the hub's events first and reads the
 * objects then, so that it misses no change.
 */
export async function watchList(watch: Watch): Promise<Status> {
  const { noun, hub, io, printing } = watch;
  const interrupted = io.interrupted();
  const changes = await Changes.follow(hub, noun.events, interrupted);
  const seen = new Map<string, string>();
  let first = true;
  const readings = new Readings(io, changes.answered);
  while (!interrupted.aborted) {
    const [items] = (await readings.all([read(watch)])) ?? [];
    if (items === undefined) {
      await changes.next(readings.pauseMs(AT_MOST_MS), interrupted);
      continue;
    }
    const news = items.filter((item) => seen.get(String(item[noun.id])) !== JSON.stringify(item));
    const gone = [...seen.keys()].filter((id) => !items.some((item) => String(item[noun.id]) === id));
    for (const item of news) seen.set(String(item[noun.id]), JSON.stringify(item));
    for (const id of gone) seen.delete(id);
    if (first || news.length > 0)
      io.out(
        await textOf(
          { noun, items: news, answer: { items: news } },
          { ...printing, headers: printing.headers && first },
          hub,
          io,
        ),
      );
    io.err(gone.map((id) => `${plain(`${noun.singular} ${id} is no longer in the list`)}\n`).join(""));
    first = false;
    await changes.next(AT_MOST_MS, interrupted);
  }
  return STATUS.interrupted;
}

/** If the operator named no objects, reads all pages of the list, because a new object may be on any page. */
async function read({ noun, names, flags, hub }: Watch): Promise<readonly Item[]> {
  if (names.length > 0) return Promise.all(names.map((name) => readOne(hub, noun, name, flags)));
  return (await readList(hub, noun, { ...flags, all: true })).items;
}
