import { z } from "zod";
import { ApiError } from "../../../shared/api/errors.ts";
import { page } from "../../../shared/api/onboardings.ts";
import { PageSession, SignInOffer } from "../../../shared/api/sessions.ts";
import { endSession, type ListedSession, listSessions } from "../../db/queries/page-sessions.ts";
import { PageQuery, pageOf, readBefore } from "../page.ts";
import { readRoute, writeRoute } from "../route.ts";

const tag = "sign-in";

const getSignIn = readRoute({
  operationId: "getSignIn",
  method: "GET",
  path: "/api/v1/sign-in",
  tag,
  summary: "Show how a client may sign in: the provider and its client for the device flow",
  permission: "public",
  right: "none",
  place: "everywhere",
  status: 200,
  response: SignInOffer,
  read: async ({ deps }) => {
    const settings = deps.signIn.oidc?.settings;
    if (settings === undefined) return { provider: null };
    const { issuer, cliClientId: client_id, cliScopes: scopes, resource } = settings;
    return { provider: { issuer, client_id, scopes, resource } };
  },
});

const toSession = (row: ListedSession): z.input<typeof PageSession> => ({
  id: row.id,
  name: row.name,
  token_id: row.tokenId,
  subject: row.subject,
  address: row.address,
  user_agent: row.userAgent,
  created_at: row.createdAt.toISOString(),
  last_used_at: row.lastUsedAt.toISOString(),
  expires_at: row.expiresAt.toISOString(),
});

const list = readRoute({
  operationId: "listSessions",
  method: "GET",
  path: "/api/v1/admin/sessions",
  tag,
  summary: "List the sessions of browsers that have not ended, the newest first",
  permission: "read",
  right: "manage_people",
  place: "hub",
  query: PageQuery,
  status: 200,
  response: page(PageSession),
  read: async ({ query, deps }) => {
    const rows = await listSessions(deps.db, readBefore(query.cursor), query.limit + 1);
    return pageOf(rows, query.limit, ({ at, id }) => [at, id], toSession);
  },
});

const end = writeRoute({
  operationId: "endSession",
  method: "POST",
  path: "/api/v1/admin/sessions/{id}/end",
  tag,
  summary: "End a session of a browser; its next request must sign in again",
  permission: "write",
  right: "manage_people",
  place: "hub",
  params: z.strictObject({ id: z.uuid() }),
  status: 204,
  response: z.null(),
  write: async ({ params: { id } }, tx) => {
    const ended = await endSession(tx, id);
    if (ended.length === 0)
      throw new ApiError("not_found", `There is no session ${id}, or it has ended. List the sessions that exist.`);
    return { body: null, audit: { target: `sessions/${id}` } };
  },
});

export const sessionRoutes = [getSignIn, list, end];
