import { z } from "zod";
import { NodeId, TaskId } from "./ids.ts";
import { canonicalJson } from "./json.ts";

/** A sanitization record names its format, so that the agent's signature is valid for no record of another format. */
export const RECORD_FORMAT = "muster-sanitization/1";
/** The largest size of a sanitization record: the bytes of its canonical JSON in UTF-8. */
export const MOST_RECORD_BYTES = 64 * 1024;
export const MOST_RECORD_TASKS = 32;
export const AGENT_SIGNATURE_ALGORITHM = "ecdsa-p256-sha256";

export const Sha256 = z.string().regex(/^[0-9a-f]{64}$/);

/** The agent that must sign the sanitization record, as the hub knows the agent at the time of writing. */
export const RecordAgent = z.object({
  version: z.string().max(64),
  boot_id: z.string().max(64),
  certificate_serial: z.string().max(64),
  public_key_sha256: Sha256,
});

/**
 * The members of a sanitization record that the agent checks before it signs the record. The agent ignores members that `Signable` does not name,
 * because a newer hub may write members that an older agent does not know.
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
 * Returns a text with the reason if `text` is not the canonical JSON of a sanitization record. The agent signs only canonical JSON, so that no
 * sanitization record has two signed texts.
 */
export function readSignable(text: string): SignableRecord | string {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // If the text of a sanitization record is not JSON, `readSignable` returns a text that says so, and the agent reports it to the hub.
    return "it is not JSON";
  }
  if (canonicalJson(value) !== text) return "it is not canonical JSON";
  const parsed = Signable.safeParse(value);
  if (parsed.success) return parsed.data;
  const [fault] = parsed.error.issues;
  return `${fault?.path.join(".") ?? ""}: ${fault?.message ?? "is not valid"}`;
}
