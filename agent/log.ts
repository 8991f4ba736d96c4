import { type LogSink, logTo, type Log as SharedLog } from "../shared/log.ts";

/** The agent writes no debug lines, because no person can switch debug lines on at a host. */
export type Log = Pick<SharedLog, "info" | "warn" | "error">;

const toStderr: LogSink = (line) => void process.stderr.write(`${line}\n`);

/** The agent's log: one JSON object a line on stderr, which journald keeps. */
export const createLog = (sink: LogSink = toStderr): Log =>
  logTo({ sink, now: () => new Date(), stackLines: 0 }, "info");
