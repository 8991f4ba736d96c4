import type { IncomingMessage, ServerResponse } from "node:http";
import type { TLSSocket } from "node:tls";
import type { HttpBindings } from "@hono/node-server";
import { type Context, Hono } from "hono";
import { z } from "zod";
import { EnrollRequest, RenewRequest } from "../../shared/api/enroll.ts";
import { ApiError, PROBLEM_TYPE, problemBody } from "../../shared/api/errors.ts";
import { fieldErrors, validationFailed } from "../../shared/api/validation.ts";
import { NodeId } from "../../shared/ids.ts";
import { Int4 } from "../../shared/int4.ts";
import type { Log } from "../../shared/log.ts";
import { AgentFrame, Hello } from "../../shared/protocol/frames.ts";
import { TRUST_PATH, type TrustChain } from "../../shared/trust.ts";
import { agentRefusals } from "../metrics/counted/agents.ts";
import { tokenHash } from "../node/enrollment-tokens.ts";
import { plainAddress } from "../outbound/addresses.ts";
import { PACKAGES_PATH, type PackageSource, sendAgentPackage } from "./agent-package-route.ts";
import { type AuthenticatedNode, authenticate, type IdentityDependencies } from "./authenticate.ts";
import { bearerToken } from "./bearer-token.ts";
import { BOOTSTRAP_SCRIPT_PATH, type RenderBootstrapScript, sendBootstrapScript } from "./bootstrap-script-route.ts";
import { BODY_BYTES } from "./budgets.ts";
import { cloudInitRoutes } from "./cloud-init-routes.ts";
import type { ConnectionAttempts } from "./connection-attempts.ts";
import { type EnrollDependencies, enroll, renew } from "./enroll.ts";
import type { Guard } from "./guard.ts";
import { parseJson } from "./json-text.ts";
import { fitsGeneration } from "./lost-certificate.ts";
import type { PollChannels } from "./poll-channels.ts";
import { bodyWithin } from "./request-body.ts";

export interface AgentRouteDependencies extends EnrollDependencies, PackageSource {
  readonly polls: PollChannels;
  readonly attempts: ConnectionAttempts;
  readonly trustChain: () => TrustChain;
  readonly bootstrapScript: RenderBootstrapScript;
  readonly log: Log;
}
type Env = { Bindings: HttpBindings };

const SessionRequest = z.strictObject({ hello: Hello });
const FramesRequest = z.strictObject({ session_epoch: z.int().min(1), frames: z.array(AgentFrame).max(100) });
/** A renewal request names the node's generation in the query string, because an older hub refuses a body with a field that it does not know. */
const RenewQuery = z.object({ generation: z.coerce.number().pipe(Int4).nullable().default(null) });
const WaitQuery = z.object({
  session_epoch: z.coerce.number().int().min(1),
  timeout_ms: z.coerce.number().int().min(0).max(60_000).default(25_000),
});

/** A route requires a client certificate of the node in the path, or a token, or no proof of identity at all. */
export function agentRoutes(deps: AgentRouteDependencies): Hono<Env> {
  const app = new Hono<Env>();
  app.onError((error, c) => problem(c, error, deps));
  app.notFound((c) =>
    problem(
      c,
      new ApiError("not_found", `There is no ${c.req.method} ${shownPath(c.req.path)} on the agent listener.`),
      deps,
    ),
  );
  const node = (c: Context<Env>, use: "channel" | "renewal" = "channel"): Promise<AuthenticatedNode> =>
    identify(deps, c.env.incoming, c.req.param("id") ?? "", use);

  app.get("/healthz", (c) => {
    deps.guard.opens(c.env.incoming.socket);
    return c.json({ status: "ok" });
  });
  // The route `TRUST_PATH` sends the chain of statements about the hub's keys to hosts that were off while the hub's CA was rotated. A host trusts
  // only the signatures of the statements about the hub's keys, not the connection to the hub.
  app.get(TRUST_PATH, (c) => {
    deps.guard.opens(c.env.incoming.socket);
    return c.json({ statements: deps.trustChain() });
  });
  app.get(`${PACKAGES_PATH}/:sha256`, (c) =>
    noted(deps, c, bearerToken(c.req.header("authorization")), (token) =>
      sendAgentPackage(deps, c.env.outgoing as ServerResponse, token, c.req.param("sha256")),
    ),
  );
  app.get(BOOTSTRAP_SCRIPT_PATH, (c) =>
    noted(deps, c, bearerToken(c.req.header("authorization")), (token) => sendBootstrapScript(deps, token)),
  );
  app.post("/internal/v1/nodes/enroll", async (c) => {
    const request = await body(c, EnrollRequest, BODY_BYTES.enroll);
    return noted(deps, c, request.token, async () => c.json(await enroll(deps, request)));
  });
  app.post("/internal/v1/nodes/:id/certificate", async (c) => {
    const caller = await node(c, "renewal");
    const { generation } = valid(RenewQuery.safeParse(c.req.query()));
    const readCsr = async () => (await body(c, RenewRequest, BODY_BYTES.renewal)).csr_pem;
    return c.json(await renew(deps, caller, readCsr, generation));
  });
  app.post("/internal/v1/nodes/:id/sessions", async (c) => {
    const identity = await node(c);
    deps.guard.asks(identity.nodeId, "session");
    const { hello } = await body(c, SessionRequest, BODY_BYTES.session);
    if (!(await fitsGeneration(deps, hello, identity)))
      throw new ApiError(
        "certificate_rejected",
        "The hello names another node or generation than the client certificate.",
      );
    return c.json({ welcome: await deps.polls.open(hello, identity) });
  });
  app.get("/internal/v1/nodes/:id/tasks/wait", async (c) => {
    const caller = await node(c);
    deps.guard.asks(caller.nodeId, "poll");
    const query = valid(WaitQuery.safeParse(c.req.query()));
    return c.json({ frames: await deps.polls.wait(caller, query.session_epoch, query.timeout_ms, c.req.raw.signal) });
  });
  app.post("/internal/v1/nodes/:id/frames", async (c) => {
    const caller = await node(c);
    deps.guard.asks(caller.nodeId, "poll");
    const request = await body(c, FramesRequest, BODY_BYTES.frames, (bytes) => deps.guard.sends(caller.nodeId, bytes));
    return c.json({ frames: await deps.polls.deliver(caller, request.session_epoch, request.frames) });
  });
  app.route("/", cloudInitRoutes(deps));
  return app;
}

/**
 * Records with the node that the hub refused an enrollment token. An onboarding that waits for the node's agent tells the operator that the hub
 * refused the agent's enrollment token.
 */
async function noted(
  { attempts, guard }: AgentRouteDependencies,
  c: Context<Env>,
  token: string | null,
  answer: (token: string | null) => Promise<Response>,
): Promise<Response> {
  try {
    const answered = await answer(token);
    guard.unproven.proven(c.env.incoming.socket);
    return answered;
  } catch (error) {
    const address = plainAddress(c.env.incoming.socket.remoteAddress);
    if (error instanceof ApiError && error.code !== "not_found" && address !== null)
      attempts.note({
        address,
        kind: "enrollment_refused",
        detail: error.code,
        tokenSha256: token === null ? null : tokenHash(token),
      });
    throw error;
  }
}

export async function identify(
  deps: IdentityDependencies & { readonly guard: Guard },
  request: unknown,
  id: string,
  use: "channel" | "renewal",
): Promise<AuthenticatedNode> {
  const nodeId = NodeId.safeParse(id);
  if (!nodeId.success) throw new ApiError("not_found", "The path does not hold a node id.");
  const socket = (request as IncomingMessage).socket as TLSSocket;
  const known = await authenticate(deps, socket, nodeId.data, use);
  // A connection with a replaced certificate stays among the unproven connections (see `UnprovenConnections`), because its client may not be a host
  // of this hub.
  if (!known.replaced) deps.guard.unproven.proven(socket);
  return known;
}

/** The callback `taken` gets the size of a request's body before the parser of the body runs. */
async function body<T>(
  c: Context<Env>,
  schema: z.ZodType<T>,
  mostBytes: number,
  taken?: (bytes: number) => void,
): Promise<T> {
  const text = await bodyWithin(c, mostBytes);
  taken?.(Buffer.byteLength(text));
  try {
    return valid(parseJson(schema, text));
  } catch (error) {
    if (error instanceof SyntaxError) throw new ApiError("malformed_json", "The body is not JSON.");
    throw error;
  }
}

/** Limits how much of a request's faulty body the hub's answer repeats, because an unknown client chooses the names of the body's members. */
const LIMITS = { errors: 20, characters: 300 };

function valid<T>(parsed: z.ZodSafeParseResult<T>): T {
  if (parsed.success) return parsed.data;
  throw validationFailed("request", fieldErrors(parsed.error), LIMITS);
}

/**
 * Returns the path of a request for answers and logs, without parts that may be tokens. `shownPath` hides a part of the path that is long enough to
 * be a token.
 */
const shownPath = (path: string): string => path.replace(/[^/]{32,}/g, "{...}");

function problem(
  c: Context<Env>,
  error: unknown,
  { guard, log }: Pick<AgentRouteDependencies, "guard" | "log">,
): Response {
  const known =
    error instanceof ApiError
      ? guard.refused(c.env.incoming.socket, error)
      : new ApiError(
          "internal_error",
          "The hub failed to process the request. Try again; the hub's log has the reason.",
        );
  if (!(error instanceof ApiError)) log.error("agent request failed", { path: shownPath(c.req.path), error });
  agentRefusals.add({ code: known.code });
  const later = known.retryAfterSeconds;
  const answer = problemBody(known);
  return new Response(JSON.stringify(answer), {
    status: answer.status,
    headers: {
      "content-type": PROBLEM_TYPE,
      ...(later === undefined ? {} : { "retry-after": String(later), connection: "close" }),
    },
  });
}
