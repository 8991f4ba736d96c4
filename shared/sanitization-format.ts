import { z } from "zod";
import { NodeId, TaskId } from "./ids.ts";
import { canonicalJson } from "./json.ts";

/**
 * The name of the format of sanitization records. A sanitization record contains the name of its format, so the agent's signature is valid for that
 * format only.
 */
export const RECORD_FORMAT = "muster-sanitization/1";
/** The largest size of a sanitization record: the bytes of its canonical JSON in UTF-8. */
export const MOST_RECORD_BYTES = 64 * 1024;
/** The most tasks that one sanitization record lists. */
export const MOST_RECORD_TASKS = 32;
export const AGENT_SIGNATURE_ALGORITHM = "ecdsa-p256-sha256";

export const Sha256 = z.string().regex(/^[0-9a-f]{64}$/);

/** The agent that must sign the sanitization record, as the hub knows the agent when the hub writes the record. */
export const RecordAgent = z.object({
  version: z.string().max(64),
  boot_id: z.string().max(64),
  certificate_serial: z.string().max(64),
  public_key_sha256: Sha256,
});

/**
 * The members of a sanitization record that the agent checks before it signs the record. The agent ignores record members that are missing in
 * `Signable`, because a newer hub may write members that an older agent does not know.
 */
const Signable = z.object({
  format: z.literal(RECORD_FORMAT),
  node: z.object({ id: NodeId }),
  agent: RecordAgent,
  tasks: z
    .array(z.object({ task_id: TaskId, epoch: z.int().min(1), result_sha256: Sha256.nullable() }))
    .max(MOST_RECORD_TASKS),
});
export type SignableRecord = z.output<typeof Signable>;

/**
 * Parses a sanitization record that the hub asks the agent to sign. If `text` is not the canonical JSON of a sanitization record, the function
 * returns the reason as a text. The agent signs only canonical JSON, so that no sanitization record has two signed texts.
 */
export function readSignable(text: string): SignableRecord | string {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // If the sanitization record is not JSON, `readSignable` returns that reason as a text, and the agent reports the reason to the hub.
    return "it is not JSON";
  }
  if (canonicalJson(value) !== text) return "it is not canonical JSON";
  const parsed = Signable.safeParse(value);
  if (parsed.success) return parsed.data;
  const [fault] = parsed.error.issues;
  return `${fault?.path.join(".") ?? ""}: ${fault?.message ?? "is not valid"}`;
}
