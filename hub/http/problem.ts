import type { Context } from "hono";
import type { z } from "zod";
import { ApiError, PROBLEM_TYPE, type Problem } from "../../shared/api/errors.ts";
import { type FieldError, fieldErrors, pointerTo, validationFailed } from "../../shared/api/validation.ts";
import { isDatabaseAway } from "../db/away.ts";
import { CommitOutcomeUnknownError } from "../db/tx.ts";
import { SecretError } from "../secrets/port.ts";
import { isUniqueViolation } from "./routes/rows.ts";

const LIMITS = { errors: 50, levels: 64 };

/** Maps any error to the API error that the client gets (decision P4). The answer to the client never contains the text of an unexpected error. */
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

/**
 * False for text that PostgreSQL would not store unchanged. PostgreSQL refuses U+0000, and stores half a surrogate pair as U+FFFD, which would change
 * a password.
 */
export const isStorable = (text: string): boolean => !text.includes("\u0000") && text.isWellFormed();

/** Returns an error for each text that PostgreSQL would change, and for each value that is nested too deeply for the hub to check. */
function unstorableTexts(value: unknown, path: readonly PropertyKey[] = []): FieldError[] {
  if (typeof value === "string")
    return isStorable(value)
      ? []
      : [{ pointer: pointerTo(path), message: "holds a NUL character or half a surrogate pair" }];
  if (value === null || typeof value !== "object") return [];
  if (path.length >= LIMITS.levels)
    return [{ pointer: pointerTo(path), message: `is nested more than ${LIMITS.levels} levels deep` }];
  return Object.entries(value).flatMap(([key, member]) => unstorableTexts(member, [...path, key]));
}

export function parse<S extends z.ZodType>(schema: S, value: unknown, where: string): z.output<S> {
  const parsed = schema.safeParse(value);
  if (!parsed.success) throw validationFailed(where, fieldErrors(parsed.error), LIMITS);
  const unstorable = unstorableTexts(parsed.data);
  if (unstorable.length > 0) throw validationFailed(where, unstorable, LIMITS);
  return parsed.data;
}
