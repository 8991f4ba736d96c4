import { createLog as createSharedLog, type LogSink, type Log as SharedLog, toStderr } from "../shared/log.ts";

/** The agent writes no debug lines, because no person can switch debug lines on at a host. */
export type Log = Pick<SharedLog, "info" | "warn" | "error">;

/** The agent's log on stderr, which journald keeps. An error has no stack there, because nobody debugs on a host. */
export const createLog = (sink: LogSink = toStderr): Log => createSharedLog("info", sink, 0);
