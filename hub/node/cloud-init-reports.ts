import { createHash } from "node:crypto";
import { z } from "zod";
import type { ConditionOf, ForeignReadinessSignal } from "../../shared/readiness.ts";

type Said = Pick<ConditionOf<"cloud-init">, "type" | "status" | "reason" | "message">;

/**
 * Returns the condition that follows from the form that cloud-init's module `phone_home` posts in cloud-init's last stage. A form from cloud-init's
 * module `phone_home` proves that the operating system is up, even if scripts of the first boot have failed.
 */
export const phoneHomeCondition = (form: URLSearchParams): Said => ({
  type: "os.booted",
  status: "True",
  reason: "PhoneHome",
  message: plain(
    `cloud-init phoned home: host ${form.get("hostname") ?? "unknown"}, instance ${form.get("instance_id") ?? "unknown"}`,
  ),
});

/**
 * The last of about eighty events that cloud-init posts during a boot, which is the only event that says how cloud-init ended. The schema `LastEvent`
 * matches only the last event that cloud-init posts during a boot, and no earlier event.
 */
const LastEvent = z.object({
  name: z.literal("modules-final"),
  event_type: z.literal("finish"),
  result: z.enum(["SUCCESS", "WARN", "FAIL"]),
  description: z.string().default(""),
});
const ENDINGS = {
  SUCCESS: { status: "True", reason: "Succeeded" },
  WARN: { status: "True", reason: "SucceededWithWarnings" },
  FAIL: { status: "False", reason: "Failed" },
} as const;

/**
 * Returns the condition that follows from an event of cloud-init's reporting webhook. `eventCondition` returns null for every event that cloud-init
 * posts before the last event of a boot.
 */
export function eventCondition(event: unknown): Said | null {
  const last = LastEvent.safeParse(event);
  if (!last.success) return null;
  const { result, description } = last.data;
  return { type: "cloud_init.done", ...ENDINGS[result], message: plain(`cloud-init: ${result}, ${description}`) };
}

/**
 * Makes a readiness signal from a report of cloud-init. The id of a readiness signal from cloud-init is derived from the hash of the report token and
 * the text of cloud-init's report. Two readiness signals from the same report of cloud-init have the same id, and only the owner of the report token
 * can produce this id. The time of a readiness signal from cloud-init is the time when the hub received the report, because the host's clock may be
 * wrong during the boot.
 */
export function reportedSignal(
  token: { sha256: string; generation: number },
  said: Said,
  report: string,
  receivedAt: Date,
): ForeignReadinessSignal {
  return {
    signal_id: idOf(`${token.sha256}\n${said.type}\n${report}`),
    generation: token.generation,
    conditions: [{ ...said, observed_at: receivedAt.toISOString() }],
  };
}

/** A UUID of version 8 (RFC 9562), made from the SHA-256 of the text. */
function idOf(text: string): string {
  const bytes = createHash("sha256").update(text).digest().subarray(0, 16);
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x80;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  return bytes.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

/** Makes a host's text safe to show: one short line, without characters that disturb terminals, readers or the database. */
const plain = (text: string): string =>
  text
    .toWellFormed()
    .replace(/[\p{C}\p{Zl}\p{Zp}]+/gu, " ")
    .slice(0, 300)
    .toWellFormed();
