import type { z } from "zod";
import { ApiError } from "./errors.ts";

export interface FieldError {
  readonly pointer: string;
  readonly message: string;
}

/** The largest number of faults that an answer about an invalid request lists. */
interface Limits {
  readonly errors: number;
  /** Error answers shorten each JSON pointer and each message, because both may repeat text of the request. */
  readonly characters?: number;
}

/** Writes the path of a field as a JSON pointer (RFC 6901); the pointer "" means the whole document. */
export const pointerTo = (path: readonly PropertyKey[]): string =>
  path.map((part) => `/${String(part).replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");

/** Names each invalid and each unknown field of a request by a JSON pointer. */
export const fieldErrors = (error: z.ZodError): FieldError[] =>
  error.issues.flatMap((issue) =>
    issue.code === "unrecognized_keys"
      ? issue.keys.map((key) => ({
          pointer: pointerTo([...issue.path, key]),
          message: "is not a field of this request",
        }))
      : [{ pointer: pointerTo(issue.path), message: issue.message }],
  );

/** `what` names the part of the request that is invalid, for example "body". */
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
