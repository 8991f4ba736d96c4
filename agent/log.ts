import { createLog as createSharedLog, type LogSink, type Log as SharedLog, toStderr } from "../shared/log.ts";

/** The agent writes no debug lines, because nobody can switch debug lines on at a host. */
export type Log = Pick<SharedLog, "info" | "warn" | "error">;

/** Makes the agent's log on stderr, which journald keeps, without stack traces. */
export const createLog = (sink: LogSink = toStderr): Log => createSharedLog("info", sink, 0);
