import { createLog } from "../../shared/log.ts";
import { noteLogLine } from "./known-secrets.ts";

/** A log for tests that do not check log lines. If `quietLog` sees a secret of the test data in a log line, the drop of the test's database fails. */
export const quietLog = createLog("debug", noteLogLine);
