import { createHash } from "node:crypto";
import { z } from "zod";
import { ApiError } from "../../shared/api/errors.ts";
import { SIGNAL_ID_LENGTH, SIGNALS_AT_ONCE } from "../../shared/api/signals.ts";
import { isStorable } from "./problem.ts";
import type { Media } from "./route.ts";

/** The media types in which an external system may send readiness signals, besides plain JSON. */
export const CLOUD_EVENT = "application/cloudevents+json";
export const CLOUD_EVENT_BATCH = "application/cloudevents-batch+json";

const name = (most: number) =>
  z.string().min(1).max(most).refine(isStorable, "holds a NUL character or half a surrogate pair");

/** The attributes of a CloudEvent that the hub reads. A CloudEvent may have any further attributes. */
const Event = z.looseObject({
  specversion: z.literal("1.0"),
  id: name(128),
  source: name(200),
  type: z.string().min(1).max(256),
  subject: z.string().max(256).optional(),
  time: z.iso.datetime({ offset: true }).optional(),
  data: z.record(z.string(), z.unknown()),
});

/**
 * Converts the body of a request with readiness signals to the plain JSON form: one signal, or an object with a list of signals. The attributes of a
 * CloudEvent become the fields of a signal: `source` and `id` become the signal's id, `subject` its node, and `time` the time of each condition that
 * names no time.
 */
export function toPlainBody({ contentType, header, text }: Parameters<Media["read"]>[0]): unknown {
  const type = contentType.split(";", 1)[0]?.trim().toLowerCase() ?? "";
  if (type === CLOUD_EVENT) return toSignal(json(text));
  if (type === CLOUD_EVENT_BATCH) return { signals: listOf(json(text)).map(toSignalOrFault) };
  if (type !== "application/json")
    throw new ApiError(
      "unsupported_media_type",
      `The body must be application/json, ${CLOUD_EVENT} or ${CLOUD_EVENT_BATCH}, not ${type === "" ? "without a content type" : type.slice(0, 64)}.`,
    );
  if (header("ce-specversion") === undefined) return json(text);
  const attributes = ["specversion", "id", "source", "type", "subject", "time"] as const;
  const given = attributes.flatMap((name) => {
    const value = header(`ce-${name}`);
    return value === undefined ? [] : [[name, decoded(value)]];
  });
  return toSignal({ ...Object.fromEntries(given), data: json(text) });
}

function json(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new ApiError("malformed_json", "The body is not JSON.");
  }
}

/** An event's attribute in a header may be percent-encoded (CloudEvents 1.0, HTTP binding). A wrong encoding stays as it is. */
function decoded(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}

function listOf(value: unknown): unknown[] {
  if (Array.isArray(value) && value.length > 0 && value.length <= SIGNALS_AT_ONCE) return value;
  throw new ApiError("validation_failed", `The body must be a list of 1 to ${SIGNALS_AT_ONCE} CloudEvents.`);
}

function toSignal(value: unknown): unknown {
  const parsed = Event.safeParse(value);
  if (parsed.success) return signalOf(parsed.data);
  const errors = parsed.error.issues.map(({ path, message }) => ({ pointer: `/${path.join("/")}`, message }));
  throw new ApiError("validation_failed", "The body is not a CloudEvent 1.0 with an object as its data.", { errors });
}

/**
 * In a batch of CloudEvents, an event that does not match the schema stays as it is, so that the result for this event says that it is not a
 * readiness signal.
 */
function toSignalOrFault(value: unknown): unknown {
  const parsed = Event.safeParse(value);
  return parsed.success ? signalOf(parsed.data) : value;
}

function signalOf({ id, source, subject, time, data }: z.output<typeof Event>): Record<string, unknown> {
  const conditions = Array.isArray(data["conditions"])
    ? data["conditions"].map((one: unknown) =>
        time !== undefined && typeof one === "object" && one !== null ? { observed_at: time, ...one } : one,
      )
    : data["conditions"];
  const node = data["node"] ?? (subject === undefined ? undefined : namedBy(subject));
  return { ...data, signal_id: signalIdOf(source, id), node, conditions };
}

/**
 * The id of an event's signal. Two different events never get the same signal id: the percent-encoded `source` and `id` contain no `#`, and an id
 * that would be too long becomes a hash, which contains none either.
 */
function signalIdOf(source: string, id: string): string {
  const whole = `${encodeURIComponent(source)}#${encodeURIComponent(id)}`;
  return whole.length <= SIGNAL_ID_LENGTH ? whole : `sha256:${createHash("sha256").update(whole).digest("hex")}`;
}

/** The `subject` of a CloudEvent is `nodes/` and the id of a node, or a hostname. */
const namedBy = (subject: string): Record<string, unknown> =>
  subject.startsWith("nodes/") ? { id: subject.slice("nodes/".length) } : { hostname: subject };
