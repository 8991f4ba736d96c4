import { type Log, type LogLevel, type LogSink, logTo } from "../shared/log.ts";

export { isAtLeast, LOG_LEVELS, type Log, type LogLevel, type LogSink } from "../shared/log.ts";

export const toStderr: LogSink = (line) => void process.stderr.write(`${line}\n`);

/** The hub's log: one JSON object per line, by default to stderr. */
export const createLog = (level: LogLevel, sink: LogSink = toStderr): Log =>
  logTo({ sink, now: () => new Date(), stackLines: 5 }, level);
