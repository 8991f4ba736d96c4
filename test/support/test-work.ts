import { z } from "zod";
import { defineWork } from "../../agent/system/workers/define-work.ts";

/** A work for tests. It notes its start in the file `starts`, and ends when the file `until` exists, unless `way` says how it goes wrong. */
export const TEST_WORK = defineWork({
  kind: "test.work",
  input: z.strictObject({
    starts: z.string(),
    until: z.string(),
    way: z.enum(["normal", "crash", "throw", "deaf", "tool"]),
  }),
  result: z.strictObject({ said: z.string() }),
  memoryMax: "256M",
  mayBlock: false,
});
