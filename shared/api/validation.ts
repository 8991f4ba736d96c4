import type { z } from "zod";
import { ApiError } from "./errors.ts";

export interface FieldError {
  readonly pointer: string;
  readonly message: string;
}

/** Limits for the list of faults with which an answer describes an invalid request. */
interface Limits {
  readonly errors: number;
  /** The maximum length of each JSON pointer and each message in an error answer, because both may repeat a text of the request. */
  readonly characters?: number;
}

/** A JSON pointer by RFC 6901 for the path of a field; the pointer "" is the whole document. */
export const pointerTo = (path: readonly PropertyKey[]): string =>
  path.map((part) => `/${String(part).replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");

/** Lists the faults of a request. The list names each invalid field and each unknown field by a JSON pointer. */
export const fieldErrors = (error: z.ZodError): FieldError[] =>
  error.issues.flatMap((issue) =>
    issue.code === "unrecognized_keys"
      ? issue.keys.map((key) => ({
          pointer: pointerTo([...issue.path, key]),
          message: "is not a field of this request",
        }))
      : [{ pointer: pointerTo(issue.path), message: issue.message }],
  );

/** Makes the error for an invalid request. The argument `what` names the invalid part of the request, for example "body". */
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
