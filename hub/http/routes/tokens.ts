import { createHash } from "node:crypto";
import { z } from "zod";
import { ApiError } from "../../../shared/api/errors.ts";
import { page } from "../../../shared/api/onboardings.ts";
import { mayGrant } from "../../../shared/api/rights.ts";
import { API_ROLES } from "../../../shared/api/roles.ts";
import {
  Token,
  TokenCreate,
  TokenId,
  TokenName,
  TokenRevoke,
  TokenRotate,
  TokenSecret,
} from "../../../shared/api/tokens.ts";
import {
  countTokens,
  endToken,
  FIRST_TOKEN,
  insertToken,
  listTokensAfter,
  lockToken,
  readToken,
  rotateToken,
} from "../../db/queries/api-tokens.ts";
import { databaseNow } from "../../db/queries/clock.ts";
import { recordDomainEvent } from "../../db/queries/domain-events.ts";
import { isUnlimited } from "../../db/queries/reach.ts";
import { giveUpWaiting } from "../../db/queries/received-signals.ts";
import { isoOrNull } from "../../db/queries/workflow-views.ts";
import type { ApiToken } from "../../db/schema/index.ts";
import type { Tx } from "../../db/tx.ts";
import type { Actor } from "../../people/actor.ts";
import { identitiesOf, identitiesOfKey } from "../../people/approvals/identities.ts";
import { newToken } from "../../people/token-text.ts";
import { pageOf, pageQuery, readCursor } from "../page.ts";
import { readRoute, writeRoute } from "../route.ts";
import { mustHaveSites } from "./rows.ts";

const tag = "tokens";
const path = "/api/v1/admin/tokens";
const TokenParams = z.strictObject({ id: TokenId });
/** The largest number of rows with tokens. Retention removes ended tokens. */
const MOST_TOKENS = 10_000;

const statusOf = ({ revokedAt, expiresAt }: ApiToken, now: Date): Token["status"] =>
  revokedAt !== null ? "revoked" : expiresAt !== null && expiresAt <= now ? "expired" : "valid";

const toToken = (row: ApiToken, now: Date): Token => ({
  id: row.id,
  name: row.name,
  role: row.role,
  site_ids: row.sites,
  tenant: row.tenant,
  status: statusOf(row, now),
  last_four: row.lastFour,
  created_by: row.createdBy,
  created_at: row.createdAt.toISOString(),
  expires_at: isoOrNull(row.expiresAt),
  last_used_at: isoOrNull(row.lastUsedAt),
  revoked_at: isoOrNull(row.revokedAt),
  previous_valid_until: isoOrNull(row.previousUntil),
});

function makeSecret() {
  const token = newToken("api");
  return { token, tokenSha256: createHash("sha256").update(token).digest("hex"), lastFour: token.slice(-4) };
}

const found = (row: ApiToken | null, id: TokenId): ApiToken => {
  if (row === null) throw new ApiError("not_found", `There is no token ${id}.`);
  return row;
};

async function told(tx: Tx, row: ApiToken, change: "created" | "rotated" | "revoked", by: Actor): Promise<void> {
  const data = { token_id: row.id, name: row.name, role: row.role, change, by: by.name };
  await recordDomainEvent(tx, { type: "token.changed", subject: `tokens/${row.id}`, data });
}

const create = writeRoute({
  operationId: "createToken",
  method: "POST",
  path,
  tag,
  summary: "Create a token with a role, limited to sites if wanted; the answer shows the token once",
  permission: "write",
  right: "manage_people",
  place: { of: "site", body: "site_ids" },
  answersSecret: true,
  body: TokenCreate,
  status: 201,
  response: TokenSecret,
  write: async ({ body, actor }, tx) => {
    if (!mayGrant(actor.role, body.role))
      throw new ApiError(
        "forbidden",
        `A token of the role ${actor.role} may not create a token of the role ${body.role}.`,
      );
    await mustHaveSites(tx, body.site_ids ?? []);
    if ((await countTokens(tx)) >= MOST_TOKENS)
      throw new ApiError("conflict", `The hub has ${MOST_TOKENS} tokens, which is the limit. Use fewer tokens.`);
    const { token, ...secret } = makeSecret();
    const { name, role, tenant, site_ids: sites = null, expires_in_days: expiresInDays } = body;
    const by = { createdBy: actor.name, knownTo: [...(await identitiesOf(tx, actor))] };
    const row = await insertToken(tx, { name, role, tenant, sites, expiresInDays, ...by, ...secret });
    if (row === null)
      throw new ApiError(
        "name_taken",
        `There is or was a token ${name}. Choose another name, so that the audit names one token only.`,
        { errors: [{ pointer: "/name", message: "is taken" }] },
      );
    await told(tx, row, "created", actor);
    const details = { name, role, tenant, site_ids: sites, expires_at: isoOrNull(row.expiresAt) };
    return {
      body: { ...toToken(row, await databaseNow(tx)), token },
      audit: { target: `tokens/${row.id}`, details },
    };
  },
});

const list = readRoute({
  operationId: "listTokens",
  method: "GET",
  path,
  tag,
  summary: "List tokens by name, with their last use and expiry, but without the tokens themselves",
  permission: "read",
  right: "manage_people",
  place: "list",
  query: z.strictObject({ ...pageQuery, name: TokenName.optional(), role: z.enum(API_ROLES).optional() }),
  status: 200,
  response: page(Token),
  read: async ({ query, actor, deps }) => {
    const after = readCursor(query.cursor, 1);
    const from = { name: query.name, role: query.role, after: after === null ? null : (after[0] ?? ""), reach: actor };
    const rows = await listTokensAfter(deps.db, from, query.limit + 1);
    const now = await databaseNow(deps.db);
    return pageOf(
      rows,
      query.limit,
      (row) => [row.name],
      (row) => toToken(row, now),
    );
  },
});

const get = readRoute({
  operationId: "getToken",
  method: "GET",
  path: `${path}/{id}`,
  tag,
  summary: "Read a token's role, limits, last use and expiry",
  permission: "read",
  right: "manage_people",
  place: { of: "token", param: "id" },
  params: TokenParams,
  status: 200,
  response: Token,
  read: async ({ params, deps }) =>
    toToken(found(await readToken(deps.db, params.id), params.id), await databaseNow(deps.db)),
});

const rotate = writeRoute({
  operationId: "rotateToken",
  method: "POST",
  path: `${path}/{id}/rotate`,
  tag,
  summary: "Give a token a new secret, which the answer shows once; the old secret stays valid for an overlap",
  permission: "write",
  right: "manage_people",
  place: { of: "token", param: "id" },
  answersSecret: true,
  params: TokenParams,
  body: TokenRotate,
  status: 200,
  response: TokenSecret,
  write: async ({ params, body, actor }, tx) => {
    const before = found(await lockToken(tx, params.id), params.id);
    const now = await databaseNow(tx);
    if (before.name === FIRST_TOKEN)
      throw new ApiError(
        "conflict",
        "The first token is in a file of the hub's state folder. To replace it, remove the file and restart the hub; or retire it (revoke-token).",
      );
    if (statusOf(before, now) !== "valid")
      throw new ApiError("conflict", `The token ${before.name} is ${statusOf(before, now)}. Create a new token.`);
    const { token, ...secret } = makeSecret();
    const { overlap_seconds: overlapSeconds, expires_in_days: expiresInDays } = body;
    // Whoever rotates a token sees its secret, so a request or an approval with the token also counts as that person's.
    const holders = await identitiesOfKey(tx, `token:${before.id}`);
    const knownTo = [...new Set([...holders, ...(await identitiesOf(tx, actor))])];
    const row = await rotateToken(tx, params.id, { ...secret, overlapSeconds, expiresInDays, knownTo });
    await told(tx, row, "rotated", actor);
    const details = { name: row.name, overlap_seconds: overlapSeconds, expires_at: isoOrNull(row.expiresAt) };
    return { body: { ...toToken(row, now), token }, audit: { target: `tokens/${row.id}`, details } };
  },
});

const revoke = writeRoute({
  operationId: "revokeToken",
  method: "POST",
  path: `${path}/{id}/revoke`,
  tag,
  summary: "End a token on every hub at once; the first admin token is retired by this command too",
  permission: "write",
  right: "manage_people",
  place: { of: "token", param: "id" },
  params: TokenParams,
  body: TokenRevoke,
  status: 200,
  response: Token,
  write: async ({ params, body: { reason }, actor }, tx) => {
    const before = found(await lockToken(tx, params.id), params.id);
    if (before.name === FIRST_TOKEN) mustOutlast(actor, before);
    const row = before.revokedAt === null ? await endToken(tx, before.id) : before;
    if (before.revokedAt === null) await told(tx, row, "revoked", actor);
    await giveUpWaiting(tx, row.name, "the token of the sender was revoked before a node fitted");
    const details = { name: row.name, role: row.role };
    return { body: toToken(row, await databaseNow(tx)), audit: { target: `tokens/${row.id}`, reason, details } };
  },
  after: async ({ params, deps }) => {
    if ((await readToken(deps.db, params.id))?.name === FIRST_TOKEN) await deps.forgetAdminToken();
  },
});

/** Only an admin of the whole hub who does not use the first token may retire it, so that somebody can still act as an admin afterwards. */
function mustOutlast(actor: Actor, first: ApiToken): void {
  if (isUnlimited(actor) && actor.tokenId !== first.id && actor.via !== "none") return;
  throw new ApiError(
    "conflict",
    "The first token cannot retire itself, because nobody might be left who can create tokens. Create another admin token, and retire the first token with it.",
  );
}

export const tokenRoutes = [create, list, get, rotate, revoke];
