import { randomBytes, randomUUID } from "node:crypto";
import { z } from "zod";
import { ApiError } from "../../../shared/api/errors.ts";
import { page } from "../../../shared/api/onboardings.ts";
import {
  SenderId,
  SignalSender,
  SignalSenderCreate,
  SignalSenderRevoke,
  SignalSenderRotate,
  SignalSenderSecret,
} from "../../../shared/api/signal-senders.ts";
import { TokenName } from "../../../shared/api/tokens.ts";
import { Secret } from "../../../shared/secret.ts";
import { recordDomainEvent } from "../../db/queries/domain-events.ts";
import { giveUpWaiting } from "../../db/queries/received-signals.ts";
import {
  actorNameOf,
  countSenders,
  insertSender,
  listSendersAfter,
  readSender,
  revokeSender,
} from "../../db/queries/signal-senders.ts";
import { isoOrNull } from "../../db/queries/workflow-views.ts";
import type { SignalSenderRow } from "../../db/schema/index.ts";
import type { Db, Tx } from "../../db/tx.ts";
import { rotated, rotateKept } from "../../events/webhook-secret.ts";
import type { Actor } from "../../people/actor.ts";
import { SECRET_PATHS } from "../../secrets/port.ts";
import { pageOf, pageQuery, readCursor } from "../page.ts";
import { readRoute, writeRoute } from "../route.ts";
import { mustHaveSites } from "./rows.ts";

const path = "/api/v1/readiness/senders";
const tag = "readiness";
const SenderParams = z.strictObject({ id: SenderId });
const MOST_SENDERS = 1_000;

const newSecret = (): string => `whsec_${randomBytes(32).toString("base64")}`;

const toSender = (row: SignalSenderRow): z.output<typeof SignalSender> => ({
  id: row.id,
  name: row.name,
  site_ids: row.sites,
  status: row.revokedAt === null ? "valid" : "revoked",
  path: `/api/v1/readiness/signals?sender=${row.id}`,
  created_by: row.createdBy,
  created_at: row.createdAt.toISOString(),
  last_used_at: isoOrNull(row.lastUsedAt),
  revoked_at: isoOrNull(row.revokedAt),
});

async function mustFind(db: Db | Tx, id: SenderId): Promise<SignalSenderRow> {
  const row = await readSender(db, id);
  if (row === null) throw new ApiError("not_found", `There is no signal sender ${id}.`);
  return row;
}

const told = (tx: Tx, row: SignalSenderRow, change: "created" | "rotated" | "revoked", by: Actor): Promise<void> =>
  recordDomainEvent(tx, {
    type: "signal_sender.changed",
    subject: `signal-senders/${row.id}`,
    data: { sender_id: row.id, name: row.name, change, by: by.name },
  });

const create = writeRoute({
  operationId: "createSignalSender",
  method: "POST",
  path,
  tag,
  summary: "Create a system that signs its readiness signals; the answer shows its secret once",
  permission: "write",
  right: "manage_people",
  place: { of: "site", body: "site_ids" },
  answersSecret: true,
  body: SignalSenderCreate,
  status: 201,
  response: SignalSenderSecret,
  before: async ({ deps }) => {
    const made = { id: SenderId.parse(randomUUID()), secret: newSecret() };
    await deps.secrets.write(SECRET_PATHS.signalSender(made.id), { secret: made.secret });
    return made;
  },
  abandon: ({ deps }, { id }) => deps.secrets.remove(SECRET_PATHS.signalSender(id)),
  write: async ({ body, actor }, tx, { id, secret }) => {
    const { name, site_ids: sites = null } = body;
    await mustHaveSites(tx, sites ?? []);
    if ((await countSenders(tx)) >= MOST_SENDERS)
      throw new ApiError("conflict", `The hub has ${MOST_SENDERS} signal senders, which is the limit.`);
    const row = await insertSender(tx, { id, name, sites, createdBy: actor.name });
    if (row === null)
      throw new ApiError(
        "name_taken",
        `There is or was a signal sender ${name}. Choose another name, so that the audit names one sender only.`,
        { errors: [{ pointer: "/name", message: "is taken" }] },
      );
    await told(tx, row, "created", actor);
    return {
      body: { ...toSender(row), secret },
      audit: { target: `signal-senders/${id}`, details: { name, site_ids: sites } },
    };
  },
});

const list = readRoute({
  operationId: "listSignalSenders",
  method: "GET",
  path,
  tag,
  summary: "List the systems that sign their readiness signals, by name and without their secrets",
  permission: "read",
  right: "manage_people",
  place: "list",
  query: z.strictObject({ ...pageQuery, name: TokenName.optional() }),
  status: 200,
  response: page(SignalSender),
  read: async ({ query, actor, deps }) => {
    const after = readCursor(query.cursor, 1)?.[0] ?? null;
    const rows = await listSendersAfter(deps.db, { name: query.name, after, reach: actor }, query.limit + 1);
    return pageOf(rows, query.limit, (row) => [row.name], toSender);
  },
});

const rotate = writeRoute({
  operationId: "rotateSignalSender",
  method: "POST",
  path: `${path}/{id}/rotate`,
  tag,
  summary: "Give a signal sender a new secret, which the answer shows once; the old one stays valid for an overlap",
  permission: "write",
  right: "manage_people",
  place: { of: "sender", param: "id" },
  answersSecret: true,
  params: SenderParams,
  body: SignalSenderRotate,
  status: 200,
  response: SignalSenderSecret,
  before: async ({ params, body, deps }) => {
    if ((await mustFind(deps.db, params.id)).revokedAt !== null)
      throw new ApiError("conflict", "The signal sender was revoked. Create another one.");
    const secret = newSecret();
    await rotateKept(deps.secrets, SECRET_PATHS.signalSender(params.id), (kept) =>
      rotated(kept, new Secret(secret), body.overlap_seconds, new Date()),
    );
    return secret;
  },
  write: async ({ params, body, actor }, tx, secret) => {
    const row = await mustFind(tx, params.id);
    await told(tx, row, "rotated", actor);
    const details = { name: row.name, overlap_seconds: body.overlap_seconds };
    return { body: { ...toSender(row), secret }, audit: { target: `signal-senders/${row.id}`, details } };
  },
});

const revoke = writeRoute({
  operationId: "revokeSignalSender",
  method: "POST",
  path: `${path}/{id}/revoke`,
  tag,
  summary: "End a signal sender on every hub at once, and remove its secret",
  permission: "write",
  right: "manage_people",
  place: { of: "sender", param: "id" },
  params: SenderParams,
  body: SignalSenderRevoke,
  status: 200,
  response: SignalSender,
  write: async ({ params, body: { reason }, actor }, tx) => {
    const before = await mustFind(tx, params.id);
    await revokeSender(tx, params.id);
    await giveUpWaiting(tx, actorNameOf(before.name), "the sender was revoked before a node fitted");
    if (before.revokedAt === null) await told(tx, before, "revoked", actor);
    const row = await mustFind(tx, params.id);
    return { body: toSender(row), audit: { target: `signal-senders/${row.id}`, reason, details: { name: row.name } } };
  },
  after: ({ params, deps }) => deps.secrets.remove(SECRET_PATHS.signalSender(params.id)),
});

export const signalSenderRoutes = [create, list, rotate, revoke];
