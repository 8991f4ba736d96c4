import type { z } from "zod";
import { ApiError } from "./errors.ts";

export interface FieldError {
  readonly pointer: string;
  readonly message: string;
}

/** Limits for the faults of a request that the answer repeats. */
interface Limits {
  readonly errors: number;
  /** The maximum length of each pointer and each message, because both may repeat a text of the request. */
  readonly characters?: number;
}

/** A JSON pointer by RFC 6901; "" is the whole document. */
export const pointerTo = (path: readonly PropertyKey[]): string =>
  path.map((part) => `/${String(part).replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");

/** Names each invalid field by a JSON pointer, and each unknown field separately. */
export const fieldErrors = (error: z.ZodError): FieldError[] =>
  error.issues.flatMap((issue) =>
    issue.code === "unrecognized_keys"
      ? issue.keys.map((key) => ({
          pointer: pointerTo([...issue.path, key]),
          message: "is not a field of this request",
        }))
      : [{ pointer: pointerTo(issue.path), message: issue.message }],
  );

/** The error for an invalid request. `what` names the invalid part of the request, for example "body". */
export function validationFailed(what: string, faults: readonly FieldError[], limits: Limits): ApiError {
  const errors = faults.slice(0, limits.errors).map(({ pointer, message }) => ({
    pointer: pointer.slice(0, limits.characters),
    message: message.slice(0, limits.characters),
  }));
  return new ApiError(
    "validation_failed",
    `The ${what} is not valid: ${errors.map(({ pointer, message }) => `${pointer || "/"} ${message}`).join("; ")}`,
    { errors },
  );
}
