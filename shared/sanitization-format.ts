import { z } from "zod";
import { NodeId, TaskId } from "./ids.ts";
import { canonicalJson } from "./json.ts";

/** The name of the record's format. A record of another format is another text, so a signature never counts for both. */
export const RECORD_FORMAT = "muster-sanitization/1";
/** The largest sanitization record: bytes of its canonical JSON in UTF-8. */
export const MOST_RECORD_BYTES = 64 * 1024;
/** The most tasks that one sanitization record lists. */
export const MOST_RECORD_TASKS = 32;
export const AGENT_SIGNATURE_ALGORITHM = "ecdsa-p256-sha256";

export const Sha256 = z.string().regex(/^[0-9a-f]{64}$/);

/** The agent that must sign the record, as the hub knows it when it writes the record. */
export const RecordAgent = z.object({
  version: z.string().max(64),
  boot_id: z.string().max(64),
  certificate_serial: z.string().max(64),
  public_key_sha256: Sha256,
});

/** The part of a record that its agent checks before it signs. A newer hub may write members that an older agent does not know. */
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
 * Parses a record that its agent is asked to sign. The result is a text with the reason if the text is no canonical JSON of a record. Only canonical
 * text is signed, so that one record never has two texts.
 */
export function readSignable(text: string): SignableRecord | string {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // The caller reports the reason to the hub.
    return "it is not JSON";
  }
  if (canonicalJson(value) !== text) return "it is not canonical JSON";
  const parsed = Signable.safeParse(value);
  if (parsed.success) return parsed.data;
  const [fault] = parsed.error.issues;
  return `${fault?.path.join(".") ?? ""}: ${fault?.message ?? "is not valid"}`;
}
