import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import type { MiddlewareHandler } from "hono";
import { encodingFor } from "../console/built-console.ts";
import type { Env } from "./authorize.ts";

const JSON_TYPE = /^application\/json\b/;
/** A JSON answer with fewer than `SMALLEST_BYTES` bytes fits into one network packet, so the hub does not compress it. */
const SMALLEST_BYTES = 1_024;
const GZIP_LEVEL = 5;
const BROTLI_QUALITY = 4;

const asGzip = promisify(gzip);
const asBrotli = promisify(brotliCompress);

/**
 * Compresses the JSON answers of reading requests, for clients that ask for it. If an attacker can choose a part of an answer's content, the length
 * of the compressed answer tells the attacker something about the rest (the BREACH attack). Because of the BREACH attack, the hub compresses neither
 * the answers of the sign-in nor the answers to changes; no other answers may contain a secret. No answer of the API contains a CSRF token. A
 * compressed answer keeps its `etag`, because the `etag` names the version of an object and not the answer's bytes.
 */
export const compressAnswers: MiddlewareHandler<Env> = async (c, next) => {
  await next();
  if (c.req.method !== "GET" || c.res.status !== 200 || !c.req.path.startsWith("/api/v1/")) return;
  if (!JSON_TYPE.test(c.res.headers.get("content-type") ?? "")) return;
  c.header("vary", "accept-encoding", { append: true });
  const encoding = encodingFor(c.req.header("accept-encoding"));
  if (encoding === null) return;
  const plain = Buffer.from(await c.res.arrayBuffer());
  const { status, headers } = c.res;
  const small = plain.byteLength < SMALLEST_BYTES;
  const encoded = small ? plain : await encode(plain, encoding);
  const given = new Headers(headers);
  if (!small) given.set("content-encoding", encoding);
  given.delete("content-length");
  // If `c.res` were not cleared first, the Hono framework would add the headers of the uncompressed answer to the new answer.
  c.res = undefined;
  c.res = new Response(encoded, { status, headers: given });
};

const encode = (plain: Buffer<ArrayBuffer>, encoding: "br" | "gzip"): Promise<Buffer<ArrayBuffer>> =>
  encoding === "br"
    ? asBrotli(plain, { params: { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY } })
    : asGzip(plain, { level: GZIP_LEVEL });
