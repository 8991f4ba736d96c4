import { randomBytes } from "node:crypto";
import type { Context, Hono } from "hono";
import { ApiError } from "../../shared/api/errors.ts";
import { encodingFor } from "../console/built-console.ts";
import type { Console } from "../console/console.ts";
import { consoleFailedPage, consoleWaitPage } from "../ui/console-wait-page.ts";
import type { Env } from "./authorize.ts";
import { servePage } from "./serve-page.ts";

export const CONSOLE = "/console/";

/** The names of assets contain a hash of their content, so a browser may keep an asset for ever. */
const FOR_EVER = "public, max-age=31536000, immutable";

const POLICY = (nonce: string): string =>
  [
    "default-src 'none'",
    `script-src 'self' 'nonce-${nonce}'`,
    `style-src 'self' 'nonce-${nonce}'`,
    "connect-src 'self'",
    "img-src 'self' data:",
    "font-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join("; ");

/**
 * Serves the operators' console. The answer to each path below `/console`, except an asset, is the console's HTML document, whose script reads the
 * path from the browser's address.
 */
export function registerConsole(app: Hono<Env>, console: Console): void {
  app.get("/console/assets/:name", (c) => serveAsset(c, console));
  app.get("/console", (c) => c.redirect(CONSOLE, 302));
  app.get("/console/*", (c) => serveDocument(c, console));
}

async function serveDocument(c: Context<Env>, console: Console): Promise<Response> {
  const state = await console.look();
  if (state.kind === "building") return servePage(c, consoleWaitPage);
  if (state.kind === "failed") return servePage(c, consoleFailedPage(state.lines), 503);
  const nonce = randomBytes(16).toString("base64");
  c.header("content-security-policy", POLICY(nonce));
  c.header("x-content-type-options", "nosniff");
  c.header("referrer-policy", "no-referrer");
  return c.html(state.built.document(nonce));
}

async function serveAsset(c: Context<Env>, console: Console): Promise<Response> {
  const name = c.req.param("name") ?? "";
  const asset = (await console.assets()).get(name);
  if (asset === undefined)
    throw new ApiError("not_found", `The console has no file ${name}. Reload the page: the hub may have a newer one.`);
  c.header("cache-control", FOR_EVER);
  c.header("etag", asset.etag);
  c.header("vary", "accept-encoding");
  if (c.req.header("if-none-match") === asset.etag) return c.body(null, 304);
  c.header("content-type", asset.type);
  c.header("x-content-type-options", "nosniff");
  c.header("cross-origin-resource-policy", "same-origin");
  const encoding = encodingFor(c.req.header("accept-encoding"));
  if (encoding === null) return c.body(asset.plain);
  c.header("content-encoding", encoding);
  return c.body(asset.encoded[encoding]);
}
