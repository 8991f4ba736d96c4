import { createLog } from "../../hub/log.ts";
import { noteLogLine } from "./known-secrets.ts";

/** For code under test whose log lines are not what the test is about. No line of any level may hold a secret: the database's `drop` says so. */
export const quietLog = createLog("debug", noteLogLine);
