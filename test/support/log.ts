import { createLog } from "../../shared/log.ts";
import { noteLogLine } from "./known-secrets.ts";

/**
 * A log for tests that do not check log lines. `quietLog` checks each log line for secrets of the test data. A test fails when it drops its database
 * after a leak.
 */
export const quietLog = createLog("debug", noteLogLine);
