import { createLog } from "../../shared/log.ts";
import { noteLogLine } from "./known-secrets.ts";

/** A log for tests that do not check log lines. The quiet log checks each line for secrets, and the test database's `drop` reports a leak. */
export const quietLog = createLog("debug", noteLogLine);
