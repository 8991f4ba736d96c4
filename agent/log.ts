import { createLog as createSharedLog, type LogSink, type Log as SharedLog, toStderr } from "../shared/log.ts";

/** The agent writes no debug lines, because no person can switch debug lines on at a host. */
export type Log = Pick<SharedLog, "info" | "warn" | "error">;

/** Makes the agent's log on stderr, which journald keeps. The agent logs an error without its stack, because nobody debugs on a host. */
export const createLog = (sink: LogSink = toStderr): Log => createSharedLog("info", sink, 0);
