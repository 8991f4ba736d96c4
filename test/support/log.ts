import { createLog } from "../../shared/log.ts";
import { noteLogLine } from "./known-secrets.ts";

/**
 * A log for tests that do not check log lines. `quietLog` checks each log line for secrets of the test data. After `quietLog` has seen a secret, the
 * drop of the test's database fails.
 */
export const quietLog = createLog("debug", noteLogLine);
