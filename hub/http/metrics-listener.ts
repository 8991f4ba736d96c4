import { createHash, timingSafeEqual } from "node:crypto";
import { readFile } from "node:fs/promises";
import { Hono } from "hono";
import type { Log } from "../../shared/log.ts";
import type { Metrics } from "../metrics/metrics.ts";

const LEAST_CHARACTERS = 16;

/**
 * Serves the hub's metrics on a listener of their own, and serves nothing else there. If the hub has a file with a metrics token, a client must send
 * the file's text as a bearer token. The hub reads the file of the metrics token at each request, so that a new token needs no restart. If the hub
 * cannot read the text of the metrics token's file, the metrics listener refuses every request.
 */
export function metricsApp(metrics: Metrics, tokenFile: string | null, log: Log): Hono {
  const app = new Hono();
  app.use(async (c, next) => {
    c.header("cache-control", "no-store");
    await next();
  });
  app.get("/metrics", async (c) => {
    if (tokenFile !== null && !(await holdsToken(tokenFile, c.req.header("authorization"), log))) {
      c.header("www-authenticate", "Bearer");
      return c.text("Send the text of the file MUSTER_METRICS_TOKEN_FILE as a bearer token.\n", 401);
    }
    const { contentType, text } = await metrics.scrape(c.req.header("accept"));
    return c.body(text, 200, { "content-type": contentType });
  });
  app.notFound((c) => c.text("This listener serves only GET /metrics.\n", 404));
  app.onError((error, c) => {
    log.error("metrics could not be served", { error });
    return c.text("The hub could not write its metrics; its log has the reason.\n", 500);
  });
  return app;
}

async function holdsToken(tokenFile: string, authorization: string | undefined, log: Log): Promise<boolean> {
  const token = /^Bearer +([\x21-\x7e]{1,512})$/i.exec(authorization ?? "")?.[1] ?? "";
  const expected = await readFile(tokenFile, "utf8").then(
    (text) => text.trim(),
    (error: unknown) => {
      log.warn("the file of the metrics token could not be read", { error });
      return "";
    },
  );
  if (expected.length < LEAST_CHARACTERS) return false;
  return timingSafeEqual(sha256(token), sha256(expected));
}

const sha256 = (text: string): Buffer => createHash("sha256").update(text).digest();
