import { randomUUID } from "node:crypto";
import { type Context, Hono } from "hono";
import { bodyLimit } from "hono/body-limit";
import { ApiError, problemBody } from "../../shared/api/errors.ts";
import { asyncApiDocument } from "../events/asyncapi.ts";
import { apiRequests } from "../metrics/counted/api-requests.ts";
import type { Credential } from "../people/credential.ts";
import { CredentialWatch } from "../people/credential-watch.ts";
import { identify } from "../people/identify.ts";
import { docsPage } from "../ui/docs-page.ts";
import type { Env } from "./authorize.ts";
import { compressAnswers } from "./compress-answers.ts";
import { CONSOLE, registerConsole } from "./console-page.ts";
import type { ApiDependencies } from "./deps.ts";
import { FailedLogins } from "./failed-logins.ts";
import { nicoNameOf, nicoProblem, registerNico } from "./nico/facade.ts";
import { openApiDocument } from "./openapi.ts";
import { asApiError, problemResponse } from "./problem.ts";
import { RefusedRequests } from "./refused-requests.ts";
import { register } from "./register.ts";
import { ROUTES } from "./routes/index.ts";
import { servePage } from "./serve-page.ts";
import { registerSignIn } from "./sign-in-routes.ts";
import { sourceAddress } from "./source-address.ts";
import { TokenBudgets } from "./token-budgets.ts";

const MAX_BODY_BYTES = 2 * 1024 * 1024;

const CLIENT_REQUEST_ID = /^[A-Za-z0-9._-]{1,64}$/;

/** The id that the client gave the request. The hub does not use the client's id as its own request id, because two clients may choose the same id. */
function clientRequestId(c: Context<Env>): string | null {
  const given = c.req.header("x-request-id");
  return given !== undefined && CLIENT_REQUEST_ID.test(given) ? given : null;
}

function nameRequest(c: Context<Env>): void {
  c.header("x-request-id", c.get("requestId"));
  const given = clientRequestId(c);
  if (given !== null) c.header("x-client-request-id", given);
}

function beginRequest(c: Context<Env>, { proxies }: ApiDependencies): void {
  c.set("requestId", randomUUID());
  const socket = c.env?.incoming?.socket.remoteAddress;
  c.set("address", sourceAddress(socket, c.req.header("x-forwarded-for"), proxies ?? null));
  nameRequest(c);
}

/**
 * Each request first gets a request id and a body limit. After the body limit, the function `register` checks the request's authentication, budget,
 * permission and input. One error handler turns every error into the answer for the client.
 */
export function createAdminApp(deps: ApiDependencies): Hono<Env> {
  const app = new Hono<Env>();
  const refused = new RefusedRequests(deps);
  app.use(async (c, next) => {
    beginRequest(c, deps);
    // No cache may store an answer of the admin API, because only an operator may see the answer.
    c.header("cache-control", "no-store");
    await next();
    countAnswer(c.req.method, c.res.status);
  });
  app.use(compressAnswers);
  app.onError((error, c) => {
    const known = asApiError(error);
    const audited = c.get("audited");
    if (audited !== undefined) refused.note(audited, known.code);
    if (known.code === "internal_error" || known.code === "unavailable")
      deps.log.error("request failed", {
        request_id: c.get("requestId"),
        ...(clientRequestId(c) === null ? {} : { client_request_id: clientRequestId(c) }),
        method: c.req.method,
        route: c.req.routePath,
        error,
      });
    nameRequest(c);
    return answerError(c, deps, known);
  });
  app.use(
    bodyLimit({
      maxSize: MAX_BODY_BYTES,
      onError: () => {
        throw new ApiError(
          "body_too_large",
          `The body is larger than ${MAX_BODY_BYTES} bytes. Split it into several requests.`,
        );
      },
    }),
  );
  const isValid = async (credential: Credential): Promise<boolean> =>
    (await identify(credential, { withoutDatabase: false, look: true }, deps)).kind === "actor";
  const guard = {
    failed: new FailedLogins(deps),
    budgets: new TokenBudgets(deps.tokenRates),
    watch: new CredentialWatch(isValid),
  };
  for (const route of ROUTES) register(app, route, deps, guard);
  registerNico(app, deps, guard);
  const document = openApiDocument(ROUTES);
  app.get("/api/v1/openapi.json", (c) => c.json(document));
  // Few clients ask for the AsyncAPI description of the events, so the hub generates it at each request and not at its start.
  app.get("/api/v1/asyncapi.json", (c) => c.json(asyncApiDocument()));
  app.get("/", (c) => c.redirect(CONSOLE, 302));
  registerSignIn(app, deps, guard.failed);
  app.get("/docs", (c) => servePage(c, docsPage));
  if (deps.console !== undefined) registerConsole(app, deps.console);
  app.notFound((c) => {
    const methods = ROUTES.filter((route) => matches(route.path, c.req.path)).map((route) => route.method);
    if (methods.length === 0)
      throw new ApiError(
        "not_found",
        `There is nothing at ${c.req.path}. The API is described at /api/v1/openapi.json.`,
      );
    c.header("allow", methods.join(", "));
    throw new ApiError("method_not_allowed", `${c.req.path} accepts ${methods.join(", ")}, not ${c.req.method}.`);
  });
  return app;
}

function answerError(c: Context<Env>, { nicoOrg }: ApiDependencies, known: ApiError): Response {
  const problem = problemBody(known, { instance: c.req.path, request_id: c.get("requestId") });
  const nico = nicoOrg === undefined ? null : nicoNameOf(c.req.path);
  return nico === null
    ? problemResponse(c, problem, known.retryAfterSeconds)
    : nicoProblem(c, nico, problem, known.retryAfterSeconds);
}

const METHODS = apiRequests.labels.method;

function countAnswer(method: string, status: number): void {
  const known = METHODS.find((one) => one === method);
  const group = apiRequests.labels.status.find((one) => one.startsWith(String(Math.floor(status / 100))));
  if (known !== undefined && group !== undefined) apiRequests.add({ method: known, status: group });
}

const matches = (template: string, path: string): boolean =>
  new RegExp(`^${template.replace(/[.]/g, "\\.").replace(/\{\w+\}/g, "[^/]+")}$`).test(path);
