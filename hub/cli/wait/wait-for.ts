import { Changes } from "../changes.ts";
import { Refused, UnknownName } from "../errors.ts";
import { Hub, type Item } from "../hub.ts";
import type { Io } from "../io.ts";

import type { Noun } from "../nouns/noun.ts";
import { plain } from "../output/plain.ts";
import type { Flags } from "../program/flags.ts";

import { STATUS, type Status } from "../statuses.ts";
import { readOne } from "../verbs/read.ts";
import type { Goal, Reached } from "./goal.ts";
import { Readings } from "./readings.ts";
import { stateOf } from "./state-of.ts";

interface Wait {
  readonly noun: Noun;
  readonly names: readonly string[];
  readonly goal: Goal;
  readonly deadlineMs: number;
  readonly flags: Flags;
  readonly io: Io;
}

/** One object for which the command waits. */
interface Waiting {
  readonly name: string;
  /**
   * The id, once the object was read. After it has read the object once, the command reads the object by its id, because another object may get the
   * name.
   */
  id: string | null;
  said: string;
  reached: Reached;
}

/**
 * Waits until all named objects are in the wanted state, and prints a line for each change. The command follows the hub's events first and reads the
 * objects then, so that it misses no change of an object between its first reading and the first event.
 */
export async function waitFor(wait: Wait): Promise<Status> {
  const { noun, io } = wait;
  const hub = await Hub.open(wait.flags, io);
  const interrupted = io.interrupted();
  const ended = new AbortController();
  const deadline = performance.now() + wait.deadlineMs;
  const all: Waiting[] = wait.names.map((name) => ({ name, id: null, said: "", reached: "no" }));
  try {
    const changes = await Changes.follow(hub, noun.events, AbortSignal.any([interrupted, ended.signal]));
    const readings = new Readings(io, changes.answered);
    for (;;) {
      await readings.all(all.filter(({ reached }) => reached === "no").map((one) => look(hub, wait, one)));
      if (all.every(({ reached }) => reached !== "no")) return endOf(all);
      const left = deadline - performance.now();
      if (left <= 0) return stopped(wait, all, STATUS.deadline);
      await changes.next(readings.pauseMs(left), interrupted);
      if (interrupted.aborted) return stopped(wait, all, STATUS.interrupted);
    }
  } finally {
    ended.abort();
  }
}

async function look(hub: Hub, { noun, goal, flags, io }: Wait, one: Waiting): Promise<void> {
  const item = await present(hub, noun, one, flags, goal);
  if (item !== null) one.id = String(item[noun.id] ?? one.id);
  one.reached = goal.reached(item);
  const line = `${one.name}: ${item === null ? "gone" : stateOf(item)}`;
  if (line !== one.said) io.out(`${plain(line)}\n`);
  one.said = line;
}

/**
 * Reads an object; null if it is gone. If no object has the name when the command begins, the name is a mistake, unless the command waits for the
 * object's deletion.
 */
async function present(hub: Hub, noun: Noun, one: Waiting, flags: Flags, goal: Goal): Promise<Item | null> {
  try {
    return await readOne(hub, noun, one.id ?? one.name, flags);
  } catch (error) {
    const absent =
      error instanceof UnknownName || (error instanceof Refused && [404, 410].includes(error.httpStatus ?? 0));
    if (!absent || (one.id === null && goal.text !== "deleted")) throw error;
    return null;
  }
}

function endOf(all: readonly Waiting[]): Status {
  const reached = all.filter((one) => one.reached === "yes").length;
  return reached === all.length ? STATUS.done : reached === 0 ? STATUS.failed : STATUS.partly;
}

function stopped({ noun, goal, io }: Wait, all: readonly Waiting[], status: Status): Status {
  const names = all.filter(({ reached }) => reached === "no").map(({ name }) => name);
  const why = status === STATUS.deadline ? "The deadline has passed" : "Stopped waiting";
  io.err(
    plain(
      `${why}; the work goes on. Wait again by: muster wait ${noun.singular} ${names.join(" ")} --for ${goal.text}\n`,
    ),
  );
  return status;
}
