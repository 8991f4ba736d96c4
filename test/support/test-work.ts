import { z } from "zod";
import { defineWork } from "../../agent/system/workers/define-work.ts";

/**
 * A kind of work for tests of worker processes, in which the agent does heavy work. The work `test.work` appends a line to the file `starts`, and
 * ends when the file `until` exists. The input `way` of the work `test.work` chooses how the work fails.
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
