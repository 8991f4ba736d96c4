import type { Log } from "../../shared/log.ts";
import { recordAudit } from "../db/queries/audit-logs.ts";
import {
  endCookie,
  endSession,
  findSession,
  type LiveSession,
  putClaims,
  type SessionOwner,
  startSession,
  takeRefresh,
} from "../db/queries/page-sessions.ts";
import type { Db, InTx, Tx } from "../db/tx.ts";
import type { Oidc } from "./open-sign-in.ts";
import { nameOf } from "./person-actor.ts";
import type { Person } from "./provider.ts";
import { type Claims, picked } from "./role-rules.ts";
import { openText, sealText } from "./sealed-text.ts";
import { newSessionId, sessionHash } from "./session-cookie.ts";
import { SignInError } from "./sign-in-error.ts";
import { stateHash } from "./sign-in-state.ts";

const MAX_USER_AGENT = 256;
/** A refresh token longer than MAX_REFRESH_TOKEN is not stored, and the hub then never asks the provider for new claims of the session. */
const MAX_REFRESH_TOKEN = 16_384;

/** The request that begins a session. */
export interface Visit {
  readonly address: string;
  readonly userAgent: string | undefined;
  readonly requestId: string;
  /**
   * The id of the earlier session in the cookie that the browser sent; null without such a cookie. A new session ends the browser's earlier session,
   * so that nobody who knows the old cookie shares the new session.
   */
  readonly oldCookie: string | null;
}

interface Begin {
  readonly owner: SessionOwner;
  readonly name: string;
  readonly role: string;
  readonly claims: Claims | null;
  readonly refreshToken: string | null;
  readonly state: string | null;
}

/** Makes a session with a new id, and returns the id for the cookie. Returns null if the same sign-in at the provider has made a session before. */
async function begin(inTx: InTx, { owner, name, role, claims, refreshToken, state }: Begin, visit: Visit) {
  const cookie = newSessionId();
  const fits = refreshToken !== null && refreshToken.length <= MAX_REFRESH_TOKEN;
  const started = await inTx(async (tx) => {
    const id = await startSession(tx, {
      idSha256: sessionHash(cookie),
      owner,
      name,
      claims,
      refreshSealed: fits ? sealText(refreshToken, cookie) : null,
      stateSha256: state === null ? null : stateHash(state),
      address: visit.address,
      userAgent: (visit.userAgent ?? "").slice(0, MAX_USER_AGENT),
    });
    if (id === null) return null;
    if (visit.oldCookie !== null) await endCookie(tx, sessionHash(visit.oldCookie));
    await auditSignIn(tx, { name, role, sessionId: id, visit, owner });
    return id;
  });
  return started === null ? null : cookie;
}

const auditSignIn = (
  tx: Tx,
  about: { name: string; role: string; sessionId: string; visit: Visit; owner: SessionOwner },
): Promise<void> =>
  recordAudit(tx, {
    actor: about.name,
    role: about.role,
    via: "tokenId" in about.owner ? "token" : "oidc",
    address: about.visit.address,
    action: "signIn",
    target: `sessions/${about.sessionId}`,
    reason: null,
    requestId: about.visit.requestId,
    details: { by: "tokenId" in about.owner ? "token" : "provider" },
  });

export const beginByToken = (
  inTx: InTx,
  token: { readonly tokenId: string; readonly name: string; readonly role: string },
  visit: Visit,
): Promise<string | null> =>
  begin(
    inTx,
    {
      owner: { tokenId: token.tokenId },
      name: token.name,
      role: token.role,
      claims: null,
      refreshToken: null,
      state: null,
    },
    visit,
  );

export async function beginByProvider(
  { inTx, oidc }: { readonly inTx: InTx; readonly oidc: Oidc },
  { person, role, state }: { readonly person: Person; readonly role: string; readonly state: string },
  visit: Visit,
): Promise<string> {
  const rules = await oidc.roles.rules();
  const { subject, refreshToken } = person;
  const name = nameOf(person.claims, subject);
  const claims = picked(person.claims, rules);
  const cookie = await begin(inTx, { owner: { subject }, name, role, claims, refreshToken, state }, visit);
  if (cookie !== null) return cookie;
  throw new SignInError("stale", "This sign-in was completed before. Begin again.");
}

/**
 * Returns the session of a cookie, or null if it has ended. If the claims of the session are old, the hub first asks the provider for new ones. If
 * the provider does not answer, the session goes on with its old claims, and if the provider refuses, the session ends. With `look`, reading the
 * session does not count as a use of the session, so it does not put off the session's idle limit.
 */
export async function presentSession(
  { db, oidc, log }: { readonly db: Db; readonly oidc: Oidc | null; readonly log: Log },
  cookie: string,
  { look }: { readonly look: boolean } = { look: false },
): Promise<LiveSession | null> {
  const session = await findSession(db, sessionHash(cookie), { look });
  if (session === null || !session.claimsAreOld || oidc === null) return session;
  const { id, subject, refreshSealed, claims } = session;
  const refreshToken = refreshSealed === null ? null : openText(refreshSealed, cookie);
  if (subject === null || refreshToken === null || !(await takeRefresh(db, id))) return session;
  try {
    const person = await oidc.provider.renew(refreshToken, { subject, claims: claims ?? {} });
    const renewed = picked(person.claims, await oidc.roles.rules());
    const next = person.refreshToken === null ? null : sealText(person.refreshToken, cookie);
    await putClaims(db, id, { claims: renewed, refreshSealed: next });
    return { ...session, claims: renewed };
  } catch (error) {
    if (!(error instanceof SignInError)) throw error;
    log.warn("the claims of a page's session could not be renewed", { session: id, failure: error.failure, error });
    if (error.failure === "provider_away") return session;
    await endSession(db, id);
    return null;
  }
}
