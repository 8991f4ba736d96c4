import type { Context } from "hono";
import { ApiError } from "../../shared/api/errors.ts";

/**
 * `bodyWithin` throws `body_too_large` before it has read more than `mostBytes`. Routes that authenticate the client check its certificate or token
 * before they call `bodyWithin`.
 */
export async function bodyWithin(c: Context, mostBytes: number): Promise<string> {
  const tooLarge = () => new ApiError("body_too_large", `The body is larger than ${mostBytes} bytes.`);
  const declared = c.req.header("content-length");
  if (declared !== undefined && c.req.header("transfer-encoding") === undefined) {
    if (Number(declared) > mostBytes) throw tooLarge();
    return c.req.text();
  }
  const chunks: Uint8Array[] = [];
  let size = 0;
  // When the loop over the request's body ends early, the hub does not read the rest of the body.
  for await (const chunk of c.req.raw.body ?? []) {
    size += chunk.length;
    if (size > mostBytes) throw tooLarge();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}
