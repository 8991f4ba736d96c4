import { Changes } from "../changes.ts";
import type { Hub, Item } from "../hub.ts";
import type { Io } from "../io.ts";
import { NOUNS } from "../nouns/index.ts";
import { plain } from "../output/plain.ts";
import { STATUS, type Status } from "../statuses.ts";
import { goalOf } from "./goal.ts";
import { Readings } from "./readings.ts";
import { stateOf } from "./state-of.ts";

const GOAL = goalOf(NOUNS.operations, "done");

/**
 * Follows the hosts of onboarding batches until each has ended: prints a line for each change of a host on standard output, and the counts on
 * standard error.
 */
export async function followBatches(
  hub: Hub,
  batches: readonly string[],
  { deadlineMs, io }: { readonly deadlineMs: number; readonly io: Io },
): Promise<Status> {
  const interrupted = io.interrupted();
  const ended = new AbortController();
  const deadline = performance.now() + deadlineMs;
  const said = new Map<unknown, string>();
  const stop = (why: string, status: Status): Status => {
    io.err(`${why}; the work goes on. Wait again by: muster wait batch ${batches.join(" ")}\n`);
    return status;
  };
  try {
    const changes = await Changes.follow(hub, NOUNS.batches.events, AbortSignal.any([interrupted, ended.signal]));
    const readings = new Readings(io, true);
    let hosts: readonly Item[] = [];
    for (;;) {
      const read = await readings.all(
        batches.map((batch) => hub.all("listOperations", { query: { batch_id: batch, limit: "200" } })),
      );
      hosts = read?.flat() ?? hosts;
      const news = hosts.filter((host) => tell(host, said, io));
      const reached = hosts.map((host) => GOAL.reached(host));
      const done = reached.filter((one) => one === "yes").length;
      const failed = reached.filter((one) => one === "never").length;
      if (news.length > 0)
        io.err(`${done + failed} of ${hosts.length} hosts done, ${failed} of them not in service.\n`);
      if (read !== null && done + failed === hosts.length)
        return failed === 0 ? STATUS.done : done === 0 ? STATUS.failed : STATUS.partly;
      const left = deadline - performance.now();
      if (left <= 0) return stop("The deadline has passed", STATUS.deadline);
      await changes.next(readings.pauseMs(left), interrupted);
      if (interrupted.aborted) return stop("Stopped waiting", STATUS.interrupted);
    }
  } finally {
    ended.abort();
  }
}

/** Prints the status line of a host if it differs from the last line printed for the host. */
function tell(host: Item, said: Map<unknown, string>, io: Io): boolean {
  const line = `${host["hostname"]}: ${stateOf(host)}`;
  if (said.get(host["operation_id"]) === line) return false;
  said.set(host["operation_id"], line);
  io.out(`${plain(line)}\n`);
  return true;
}
