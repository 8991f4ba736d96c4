import { z } from "zod";
import { TaskId } from "../ids.ts";
import { AGENT_SIGNATURE_ALGORITHM, MOST_RECORD_BYTES, MOST_RECORD_TASKS } from "../sanitization-format.ts";
import { defineTask } from "./define-task.ts";

/**
 * With the key of its certificate, the agent signs a sanitization record (architecture 14.5). Before the agent signs, it compares each task's result
 * in the sanitization record with its own journal of tasks. The task `node.sign_record` changes nothing on the host.
 */
export const signRecord = defineTask({
  type: "node.sign_record",
  changes: "nothing",
  leaseSeconds: 60,
  destructive: false,
  /** The agent signs exactly the characters of the sanitization record's `text`, in UTF-8. */
  input: z.strictObject({ text: z.string().min(2).max(MOST_RECORD_BYTES) }),
  result: z.strictObject({
    signature: z.string().regex(/^[A-Za-z0-9+/]{90,100}={0,2}$/),
    algorithm: z.literal(AGENT_SIGNATURE_ALGORITHM),
    certificate_serial: z.string().regex(/^[0-9a-f]{1,40}$/),
    certificate_pem: z.string().max(4_096),
    /** Tasks of the sanitization record whose results the agent's journal does not have, for example because the host was reinstalled. */
    unknown_tasks: z.array(TaskId).max(MOST_RECORD_TASKS),
  }),
  progress: z.null(),
  errors: { malformed: "fail", foreign_node: "fail", agent_differs: "fail", result_differs: "fail" },
});
