import type { Context } from "hono";
import type { z } from "zod";
import { API_ERRORS, ApiError, type Problem } from "../../shared/api/errors.ts";
import { SecretError } from "../secrets/port.ts";
import { isUniqueViolation } from "./routes/rows.ts";

const MAX_ERRORS = 50;

/** The one place where errors become answers (decision P4). What is not expected says nothing of itself to the client. */
export function problemOf(error: unknown, requestId: string, instance: string): Problem {
  const known = asApiError(error);
  const { status, title } = API_ERRORS[known.code];
  return {
    type: `urn:muster:problem:${known.code}`,
    title,
    status,
    code: known.code,
    detail: known.message,
    instance,
    request_id: requestId,
    ...(known.errors === undefined ? {} : { errors: known.errors }),
    ...(known.context === undefined ? {} : { context: known.context }),
  };
}

export function asApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  if (isUniqueViolation(error))
    return new ApiError(
      "conflict",
      "The request collides with something that is there already, or with another row of itself. Nothing was written.",
      { cause: error },
    );
  if (error instanceof SecretError) return new ApiError("unavailable", error.message, { cause: error });
  return new ApiError(
    "internal_error",
    "The hub failed to answer; its log has the reason under this request id. Try again.",
    { cause: error },
  );
}

export function problemResponse(c: Context, problem: Problem): Response {
  const headers = {
    "content-type": "application/problem+json",
    ...(problem.status === 401 ? { "www-authenticate": "Bearer" } : {}),
  };
  return c.newResponse(JSON.stringify(problem), problem.status as 400, headers);
}

/** Names each field at fault by a JSON pointer; unknown fields are named one by one. */
function validationError(where: string, error: z.ZodError): ApiError {
  const errors = error.issues.slice(0, MAX_ERRORS).flatMap((issue) => {
    const pointer = `/${issue.path.map((part) => String(part).replaceAll("~", "~0").replaceAll("/", "~1")).join("/")}`;
    if (issue.code !== "unrecognized_keys")
      return [{ pointer: pointer === "/" ? "" : pointer, message: issue.message }];
    return issue.keys.map((key) => ({
      pointer: `${pointer === "/" ? "" : pointer}/${key}`,
      message: "is not a field of this request",
    }));
  });
  return new ApiError(
    "validation_failed",
    `The ${where} is not valid: ${errors.map((one) => `${one.pointer || "/"} ${one.message}`).join("; ")}`,
    { errors },
  );
}

export function parse<T>(schema: z.ZodType<T>, value: unknown, where: string): T {
  const parsed = schema.safeParse(value);
  if (!parsed.success) throw validationError(where, parsed.error);
  return parsed.data;
}
