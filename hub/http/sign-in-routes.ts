import type { Context, Hono } from "hono";
import { z } from "zod";
import { ApiError } from "../../shared/api/errors.ts";
import { findTokenHolder } from "../db/queries/api-tokens.ts";
import { recordAudit } from "../db/queries/audit-logs.ts";
import { endSession, endSessionsOf, type LiveSession, type SessionOwner } from "../db/queries/page-sessions.ts";
import { AddressBudgets } from "../gateway/address-budgets.ts";
import { tokenHash } from "../people/credential.ts";
import type { Oidc } from "../sign-in/open-sign-in.ts";
import { nameOf, personActor } from "../sign-in/person-actor.ts";
import { cookieValue, isSessionId, noCookie, sessionCookie, signInCookie } from "../sign-in/session-cookie.ts";
import { beginByProvider, beginByToken, presentSession, type Visit } from "../sign-in/sessions.ts";
import { SignInError, type SignInFailure } from "../sign-in/sign-in-error.ts";
import { fromCookie, placeOf, toCookie } from "../sign-in/sign-in-state.ts";
import { signInFailedPage } from "../ui/sign-in-page.ts";
import type { Env } from "./authorize.ts";
import { mustBeOfPage, mustNotBeForged } from "./csrf-refusal.ts";
import type { ApiDependencies } from "./deps.ts";
import type { FailedLogins } from "./failed-logins.ts";
import { readJson } from "./json-body.ts";
import { asApiError, parse } from "./problem.ts";
import { servePage } from "./serve-page.ts";

/** Each sign-in by the identity provider costs the hub requests to the provider, so one address may not begin sign-ins without a limit. */
const RATE = { burst: 100, perMinute: 60 };
const RATES = { connection: RATE, refusal: RATE, open: RATE };

const TITLES: Readonly<Record<SignInFailure, string>> = {
  provider_away: "The provider of the sign-in does not answer",
  refused: "The sign-in was refused",
  stale: "This sign-in is no longer valid",
  invalid: "The provider's answer is not acceptable",
};

const TokenBody = z.strictObject({ token: z.string().min(1).max(512) });
const SignOutBody = z.strictObject({ everywhere: z.boolean().default(false) });

/**
 * The URL paths that only browsers use: the redirect to the identity provider, the return from it, the state of the sign-in, the sign-in with a
 * token, and the sign-out. The sign-in addresses are not routes of the API, because they answer with cookies and redirects.
 */
export function registerSignIn(app: Hono<Env>, deps: ApiDependencies, failed: FailedLogins): void {
  const { signIn } = deps;
  const budgets = new AddressBudgets(RATES);
  const oidc = (c: Context<Env>): Oidc => {
    if (signIn.oidc === null)
      throw new ApiError("not_found", "This hub has no provider. Sign in with a token in the console.");
    const waitMs = budgets.ask(addressOf(c), "open");
    if (waitMs === 0) return signIn.oidc;
    const retryAfterSeconds = Math.ceil(waitMs / 1000);
    throw new ApiError(
      "rate_limited",
      `Your address has begun too many sign-ins. Try again in ${retryAfterSeconds} s.`,
      { retryAfterSeconds },
    );
  };
  app.get("/sign-in", (c) => withPage(c, deps, () => toProvider(c, deps, oidc(c))));
  app.get("/sign-in/callback", (c) => withPage(c, deps, () => fromProvider(c, deps, oidc(c))));
  // The console asks whether the browser has a session before it calls the API, so that a browser without a session causes no refused request.
  app.get("/sign-in/state", async (c) => {
    const cookie = cookieOf(c, deps);
    const { db, log } = deps;
    const session = cookie === null ? null : await presentSession({ db, oidc: null, log }, cookie);
    return c.json({ signed_in: session !== null, provider: signIn.oidc !== null });
  });
  app.post("/sign-in/token", async (c) => {
    mustBeOfPage(c, signIn.publicOrigin);
    const { token } = parse(TokenBody, await readJson(c), "body");
    const holder = await findTokenHolder(deps.db, tokenHash(token));
    if (holder === null) {
      failed.note({ address: addressOf(c), operationId: "signIn", requestId: c.get("requestId") });
      throw new ApiError(
        "unauthenticated",
        "The hub refuses this token. The first token is in the file admin-token of the hub's state folder, or of MUSTER_SHARED_DIR if that is set.",
      );
    }
    const cookie = await beginByToken(deps.inTx, holder, visitOf(c, deps));
    if (cookie === null) throw new Error("a session by a token was not made");
    c.header("set-cookie", sessionCookie(signIn.cookies, cookie));
    return c.body(null, 204);
  });
  app.post("/sign-out", (c) => signOut(c, deps));
}

const addressOf = (c: Context<Env>): string => c.get("address") ?? "unknown";

const cookieOf = (c: Context<Env>, { signIn: { cookies } }: ApiDependencies): string | null => {
  const value = cookieValue(c.req.header("cookie") ?? null, cookies.session);
  return value !== null && isSessionId(value) ? value : null;
};

const visitOf = (c: Context<Env>, deps: ApiDependencies): Visit => ({
  address: addressOf(c),
  userAgent: c.req.header("user-agent"),
  requestId: c.get("requestId"),
  oldCookie: cookieOf(c, deps),
});

async function toProvider(c: Context<Env>, { signIn }: ApiDependencies, { provider }: Oidc): Promise<Response> {
  const { location, begun } = await provider.begin();
  const kept = toCookie({ ...begun, place: placeOf(c.req.query("to")) });
  c.header("set-cookie", signInCookie(signIn.cookies, kept));
  return c.redirect(location, 303);
}

/**
 * Ends the way over the provider. The browser must bring the cookie of the sign-in that it began, so that nobody can use a link to sign another
 * person's browser in to a foreign account. The cookie is deleted whatever happens.
 */
async function fromProvider(c: Context<Env>, deps: ApiDependencies, oidc: Oidc): Promise<Response> {
  const { signIn, db, inTx } = deps;
  const kept = fromCookie(cookieValue(c.req.header("cookie") ?? null, signIn.cookies.signIn));
  c.header("set-cookie", noCookie(signIn.cookies, "signIn"));
  const query = new URL(c.req.url).searchParams;
  if (kept === null || query.get("state") !== kept.state)
    throw new SignInError(
      "stale",
      "This browser did not begin this sign-in, began it more than ten minutes ago, or has completed it. Begin again.",
    );
  const person = await oidc.provider.finish(query, kept);
  const { subject, claims } = person;
  const who = { via: "session", subject, name: nameOf(claims, subject), claims } as const;
  // A person without a role gets no session, but an answer that says so.
  const { role } = await personActor(who, oidc.roles, db);
  const cookie = await beginByProvider({ inTx, oidc }, { person, role, state: kept.state }, visitOf(c, deps));
  c.header("set-cookie", sessionCookie(signIn.cookies, cookie), { append: true });
  return c.redirect(`/${kept.place}`, 303);
}

/** A person reads the answer to a sign-in in a browser, so a failed sign-in answers with a page and not with JSON. */
async function withPage(c: Context<Env>, deps: ApiDependencies, answer: () => Promise<Response>): Promise<Response> {
  try {
    return await answer();
  } catch (error) {
    const requestId = c.get("requestId");
    if (error instanceof SignInError) {
      deps.log.warn("a sign-in failed", { failure: error.failure, request_id: requestId, error });
      const failed = { title: TITLES[error.failure], detail: error.message, code: error.failure, requestId };
      return servePage(c, signInFailedPage(failed), error.failure === "provider_away" ? 503 : 403);
    }
    const known = asApiError(error);
    if (known.code !== "no_role" && known.code !== "groups_left_out") throw error;
    deps.log.info("a person without a role signed in", { code: known.code, request_id: requestId });
    const title = "You are signed in, but you have no role here";
    return servePage(c, signInFailedPage({ title, detail: known.message, code: known.code, requestId }), 403);
  }
}

async function signOut(c: Context<Env>, deps: ApiDependencies): Promise<Response> {
  const { signIn, db, inTx, log } = deps;
  mustNotBeForged(c, signIn.publicOrigin, true);
  const { everywhere } = parse(SignOutBody, await readJson(c), "body");
  const cookie = cookieOf(c, deps);
  const session = cookie === null ? null : await presentSession({ db, oidc: null, log }, cookie);
  c.header("set-cookie", noCookie(signIn.cookies, "session"));
  if (session === null) return c.body(null, 204);
  await inTx(async (tx) => {
    const ended = everywhere ? await endSessionsOf(tx, ownerOf(session)) : await endSession(tx, session.id);
    await recordAudit(tx, {
      actor: session.name,
      role: "none",
      via: "session",
      address: c.get("address"),
      action: "signOut",
      target: `sessions/${session.id}`,
      reason: null,
      requestId: c.get("requestId"),
      details: { sessions: ended.length, everywhere },
    });
  });
  return c.body(null, 204);
}

function ownerOf({ tokenId, subject }: Pick<LiveSession, "tokenId" | "subject">): SessionOwner {
  if (tokenId !== null) return { tokenId };
  if (subject !== null) return { subject };
  throw new Error("a session belongs to a token or a person");
}
