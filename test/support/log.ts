import { createLog } from "../../shared/log.ts";
import { noteLogLine } from "./known-secrets.ts";

/**
 * A log for tests that do not check log lines. `quietLog` checks each log line for secrets of the test data, and the `drop` of the test's database
 * reports a leaked secret.
 */
export const quietLog = createLog("debug", noteLogLine);
