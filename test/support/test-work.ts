import { z } from "zod";
import { defineWork } from "../../agent/system/workers/define-work.ts";

/**
 * A kind of work for tests of worker processes, which do heavy work outside the agent's process. The work `test.work` appends a line to the file
 * `starts`, and ends when the file `until` exists. The input `way` can make the work `test.work` fail.
 */
export const TEST_WORK = defineWork({
  kind: "test.work",
  input: z.strictObject({
    starts: z.string(),
    until: z.string(),
    way: z.enum(["normal", "crash", "throw", "deaf", "silent", "tool"]),
  }),
  result: z.strictObject({ said: z.string() }),
  memoryMax: "256M",
  mayBlock: false,
});
