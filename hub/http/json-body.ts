import type { Context } from "hono";
import { ApiError } from "../../shared/api/errors.ts";

export async function readJson(c: Context): Promise<unknown> {
  const type = c.req.header("content-type") ?? "";
  if (!/^application\/json *(;|$)/i.test(type))
    throw new ApiError(
      "unsupported_media_type",
      `The body must be application/json, not ${type === "" ? "without a content type" : type.slice(0, 64)}.`,
    );
  try {
    return JSON.parse(await c.req.text());
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new ApiError("malformed_json", "The body is not JSON.");
  }
}
