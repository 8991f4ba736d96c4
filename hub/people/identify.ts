import { ApiError } from "../../shared/api/errors.ts";
import type { Log } from "../../shared/log.ts";
import {
  countOtherAdmins,
  FIRST_TOKEN,
  findTokenHolder,
  findTokenHolderById,
  type TokenHolder,
  touchToken,
} from "../db/queries/api-tokens.ts";
import { recordDomainEvent } from "../db/queries/domain-events.ts";
import { EVERYWHERE } from "../db/queries/reach.ts";
import type { Db, InTx } from "../db/tx.ts";
import { ACCESS_TOKEN_FAULTS } from "../sign-in/access-token.ts";
import { isOfPerson } from "../sign-in/access-token-holder.ts";
import type { SignIn } from "../sign-in/open-sign-in.ts";
import { nameOf, personActor } from "../sign-in/person-actor.ts";
import { picked } from "../sign-in/role-rules.ts";
import { presentSession } from "../sign-in/sessions.ts";
import { within } from "../timing/pause.ts";
import type { Actor } from "./actor.ts";
import type { Credential } from "./credential.ts";
import { isMiscopied } from "./token-text.ts";

/** The longest time that the hub waits for the database, if the hub can identify the client without the database. */
const LOOKUP_MS = 3_000;

export interface Identifiers {
  readonly db: Db;
  readonly inTx: InTx;
  readonly log: Log;
  readonly signIn: SignIn;
  /** True for the admin token in the hub's state folder. The hub checks the admin token without its database. */
  readonly isAdminToken: (token: string) => Promise<boolean>;
}

/** The actor for the admin token of the hub's state folder while the database with the tokens does not answer. */
const FIRST_ADMIN: Actor = {
  ...EVERYWHERE,
  name: "admin",
  via: "token",
  role: "admin",
  tokenId: null,
  personId: null,
};

export type Identified =
  | { readonly kind: "actor"; readonly actor: Actor }
  /** The credential is not valid (any more). `detail` says why the hub refuses the credential, and what to do next. */
  | { readonly kind: "refused"; readonly detail: string };

/**
 * The only function that makes an actor from a request. `identify` throws `no_role` for a person who has signed in and has no role, and `unavailable`
 * if the hub needs the identity provider and the provider does not answer. With `look`, `identify` checks a credential without counting this as a
 * use, so the check does not extend the idle limit of a console session.
 */
export async function identify(
  credential: Credential,
  { withoutDatabase, look = false }: { readonly withoutDatabase: boolean; readonly look?: boolean },
  identifiers: Identifiers,
): Promise<Identified> {
  if (credential.kind === "session") return holderOfSession(credential, look, identifiers);
  if (credential.kind === "access_token") return holderOfAccessToken(credential, identifiers);
  if (isMiscopied(credential.token)) return refused();
  // The database finds the API token by the token's hash, so the duration of the look-up reveals nothing about the token.
  const held = holderOf(identifiers, credential.tokenSha256);
  if (!withoutDatabase) return orRefused(await held);
  const known = held.then(
    (actor) => ({ actor }),
    () => null,
  );
  const found = await within(LOOKUP_MS, known);
  if (found !== null) return orRefused(found.actor);
  return orRefused((await identifiers.isAdminToken(credential.token)) ? FIRST_ADMIN : await held);
}

const SEND_TOKEN =
  "Send a valid token as `Authorization: Bearer <token>`. The first token is in the file admin-token of the hub's state folder, or of MUSTER_SHARED_DIR if that is set.";
export const refused = (detail: string = SEND_TOKEN): Identified => ({ kind: "refused", detail });
const orRefused = (actor: Actor | null): Identified => (actor === null ? refused() : { kind: "actor", actor });

async function holderOf(identifiers: Identifiers, tokenSha256: string): Promise<Actor | null> {
  const held = await findTokenHolder(identifiers.db, tokenSha256);
  if (held === null) return null;
  const { isStale, ...holder } = held;
  if (isStale) noteUse(identifiers, holder);
  return { ...holder, via: "token", personId: null };
}

/** Writes the last use of a token while the request goes on: a request never waits for this, and never fails because of it. */
function noteUse({ db, inTx, log }: Identifiers, { tokenId, name, role }: TokenHolder): void {
  const note = async (): Promise<void> => {
    const rested = await touchToken(db, tokenId);
    if (!rested || name !== FIRST_TOKEN || (await countOtherAdmins(db)) === 0) return;
    log.warn("the first admin token was used, although other admin tokens exist", { token: name });
    const data = { token_id: tokenId, name, role, change: "used" as const, by: name };
    await inTx((tx) => recordDomainEvent(tx, { type: "token.changed", subject: `tokens/${tokenId}`, data }));
  };
  note().catch((error: unknown) => log.warn("the last use of a token could not be written", { token: name, error }));
}

const SESSION_ENDED = "Your session has ended. Sign in again.";

/** A session has the rights that its token or person has now, so a revoked token or a changed rule takes effect at the next request. */
async function holderOfSession(
  { token }: Credential,
  look: boolean,
  { db, log, signIn: { oidc } }: Identifiers,
): Promise<Identified> {
  const session = await presentSession({ db, oidc, log }, token, { look });
  if (session === null) return refused(SESSION_ENDED);
  const { tokenId, subject, name, claims } = session;
  if (tokenId !== null) {
    const holder = await findTokenHolderById(db, tokenId);
    if (holder === null) return refused("The token of your session is no longer valid. Sign in again.");
    return { kind: "actor", actor: { ...holder, via: "session", personId: null } };
  }
  if (subject === null || oidc === null) return refused(SESSION_ENDED);
  const actor = await personActor({ via: "session", subject, name, claims: claims ?? {} }, oidc.roles, db);
  return { kind: "actor", actor };
}

async function holderOfAccessToken({ token }: Credential, { db, signIn: { oidc } }: Identifiers): Promise<Identified> {
  if (oidc === null) return refused("The hub takes no access tokens, because MUSTER_OIDC_ISSUER is not set.");
  const verified = await oidc.accessTokens.verify(token);
  if (verified.kind === "refused")
    return refused(`The hub refuses the access token: ${ACCESS_TOKEN_FAULTS[verified.fault]}. Get a new one.`);
  if (verified.kind === "provider_away")
    throw new ApiError(
      "unavailable",
      "The hub cannot check the access token, because the provider does not answer. Try again, or use an API token.",
    );
  const { claims } = verified;
  const name = nameOf(claims, claims.sub);
  const actor = await personActor({ via: "oidc", subject: claims.sub, name, claims }, oidc.roles, db);
  const kept = picked(claims, await oidc.roles.rules());
  const accessToken = { claims: kept, until: new Date(claims.exp * 1000) };
  const machine = isOfPerson(claims, oidc.settings.cliClientId) ? {} : { personId: null, machineId: claims.sub };
  return { kind: "actor", actor: { ...actor, ...machine, accessToken } };
}
