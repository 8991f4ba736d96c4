import { createLog } from "../../hub/log.ts";

/** For code under test whose log lines are not what the test is about. */
export const quietLog = createLog("error", () => undefined);
