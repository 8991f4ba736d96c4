import type { Context } from "hono";
import type { z } from "zod";
import { ApiError, PROBLEM_TYPE, type Problem } from "../../shared/api/errors.ts";
import { isDatabaseAway } from "../db/away.ts";
import { CommitOutcomeUnknownError } from "../db/tx.ts";
import { SecretError } from "../secrets/port.ts";
import { isUniqueViolation } from "./routes/rows.ts";

const MAX_ERRORS = 50;

/** Maps any error to the error that the client gets (decision P4). The text of an unexpected error is not sent to the client. */
export function asApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  if (isUniqueViolation(error))
    return new ApiError(
      "conflict",
      "The request conflicts with an existing object, or two of its own rows conflict. Nothing was written. Read what exists, then change the request.",
      { cause: error },
    );
  if (error instanceof SecretError)
    return new ApiError(error.code === "secret_conflict" ? "conflict" : "unavailable", error.message, { cause: error });
  if (error instanceof CommitOutcomeUnknownError)
    return new ApiError(
      "unavailable",
      "The database connection broke during the commit, so the request may have taken effect. Check that before you repeat it, or repeat it with the same Idempotency-Key.",
      { cause: error },
    );
  if (isDatabaseAway(error))
    return new ApiError("unavailable", "The hub's database does not answer. Nothing was written; try again.", {
      cause: error,
    });
  return new ApiError(
    "internal_error",
    "The hub failed to process the request. Its log has the reason under this request id. Try again.",
    { cause: error },
  );
}

export function problemResponse(c: Context, problem: Problem, retryAfterSeconds?: number): Response {
  const headers = {
    "content-type": PROBLEM_TYPE,
    ...(problem.status === 401 ? { "www-authenticate": "Bearer" } : {}),
    ...(retryAfterSeconds === undefined ? {} : { "retry-after": String(retryAfterSeconds) }),
  };
  return c.newResponse(JSON.stringify(problem), problem.status as 400, headers);
}

type FieldError = { readonly pointer: string; readonly message: string };

/** A JSON pointer by RFC 6901; "" is the whole document. */
const pointerTo = (path: readonly PropertyKey[]): string =>
  path.map((part) => `/${String(part).replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");

/** Names each invalid field by a JSON pointer, and each unknown field separately. */
function fieldErrors(error: z.ZodError): FieldError[] {
  return error.issues
    .flatMap((issue) =>
      issue.code === "unrecognized_keys"
        ? issue.keys.map((key) => ({
            pointer: pointerTo([...issue.path, key]),
            message: "is not a field of this request",
          }))
        : [{ pointer: pointerTo(issue.path), message: issue.message }],
    )
    .slice(0, MAX_ERRORS);
}

/**
 * False for text that PostgreSQL would not store unchanged. It refuses U+0000, and half a surrogate pair becomes U+FFFD, which would change a
 * password.
 */
export const isStorable = (text: string): boolean => !text.includes("\u0000") && text.isWellFormed();

function unstorableTexts(value: unknown, path: readonly PropertyKey[] = []): FieldError[] {
  if (typeof value === "string")
    return isStorable(value)
      ? []
      : [{ pointer: pointerTo(path), message: "holds a NUL character or half a surrogate pair" }];
  if (value === null || typeof value !== "object") return [];
  return Object.entries(value).flatMap(([key, member]) => unstorableTexts(member, [...path, key]));
}

function invalid(where: string, errors: FieldError[]): ApiError {
  return new ApiError(
    "validation_failed",
    `The ${where} is not valid: ${errors.map((one) => `${one.pointer || "/"} ${one.message}`).join("; ")}`,
    { errors },
  );
}

export function parse<T>(schema: z.ZodType<T>, value: unknown, where: string): T {
  const parsed = schema.safeParse(value);
  if (!parsed.success) throw invalid(where, fieldErrors(parsed.error));
  const unstorable = unstorableTexts(parsed.data);
  if (unstorable.length > 0) throw invalid(where, unstorable.slice(0, MAX_ERRORS));
  return parsed.data;
}
