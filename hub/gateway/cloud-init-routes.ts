import { type Context, Hono } from "hono";
import { ApiError } from "../../shared/api/errors.ts";
import { readNode } from "../db/queries/nodes.ts";
import { findReportToken } from "../db/queries/report-tokens.ts";
import type { Db, InTx } from "../db/tx.ts";
import { eventCondition, phoneHomeCondition, reportedSignal } from "../node/cloud-init-reports.ts";
import { applyReadinessSignal } from "../node/conditions.ts";
import { tokenHash } from "../node/enrollment-tokens.ts";
import { BODY_BYTES } from "./budgets.ts";
import type { Guard } from "./guard.ts";
import { bodyWithin } from "./request-body.ts";

interface CloudInitDependencies {
  readonly db: Db;
  readonly inTx: InTx;
  readonly guard: Guard;
}

export const PHONE_HOME_PATH = "/internal/v1/phone-home";
export const REPORTING_PATH = "/internal/v1/cloud-init";
const SOURCE = "cloud-init";

/**
 * The routes to which the modules `phone_home` and `reporting` of cloud-init post their reports. The modules `phone_home` and `reporting` of
 * cloud-init cannot send a header, so the report token is in the path of the URL. A report token is valid only for its node, in the generation for
 * which the hub issued the token.
 */
export function cloudInitRoutes(deps: CloudInitDependencies): Hono {
  const app = new Hono();
  app.post(`${PHONE_HOME_PATH}/:token`, (c) => take(deps, c, (text) => phoneHomeCondition(new URLSearchParams(text))));
  app.post(`${REPORTING_PATH}/:token`, (c) => take(deps, c, (text) => eventCondition(jsonOf(text))));
  return app;
}

type Reading = (text: string) => ReturnType<typeof eventCondition>;

async function take(deps: CloudInitDependencies, c: Context, read: Reading): Promise<Response> {
  const given = c.req.param("token") ?? "";
  const sha256 = tokenHash(given);
  const token = await findReportToken(deps.db, sha256);
  if (token === null) throw unknownReportToken();
  deps.guard.asks(token.nodeId, "cloudInit");
  const report = await bodyWithin(c, BODY_BYTES.cloudInitReport);
  // cloud-init's error messages may contain the report URL, which contains the report token.
  const said = read(report.replaceAll(given, "[redacted]"));
  if (said !== null) {
    const signal = reportedSignal({ sha256, generation: token.generation }, said, report, new Date());
    await deps.inTx(async (tx) => {
      const node = await readNode(tx, token.nodeId);
      if (node === null) return;
      await applyReadinessSignal(tx, node, SOURCE, signal);
    });
  }
  return c.body(null, 204);
}

const unknownReportToken = (): ApiError =>
  new ApiError(
    "not_found",
    "The report token in the path is not known: another one replaced it, or its node was deleted. Get a new one with POST /api/v1/admin/nodes/{id}/report-token.",
  );

function jsonOf(text: string): unknown {
  try {
    // The code need not call `parseJson`, which repairs text that PostgreSQL refuses, because the hub stores only a few plain texts of each
    // cloud-init event.
    return JSON.parse(text);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new ApiError("malformed_json", "The body is not JSON.");
  }
}
