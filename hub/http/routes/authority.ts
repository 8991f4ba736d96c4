import { createHash, X509Certificate } from "node:crypto";
import type { z } from "zod";
import {
  Authority,
  AuthorityRotation,
  AuthorityRotationFinish,
  AuthorityRotationStart,
} from "../../../shared/api/authority.ts";
import { ApiError } from "../../../shared/api/errors.ts";
import type { TrustKind } from "../../../shared/trust.ts";
import { countTrust } from "../../db/queries/authority-statements.ts";
import { recordDomainEvent } from "../../db/queries/domain-events.ts";
import type { Tx } from "../../db/tx.ts";
import type { HubAuthority, Prepared } from "../../gateway/hub-authority.ts";
import { type Route, readRoute, writeRoute } from "../route.ts";

const path = "/api/v1/admin/authority";
const tag = "authority";
/** Of the hosts that do not know the next keys yet, so many are named. */
const MOST_NAMED = 50;

const keysOf = ({ ca_pem, order_key }: { ca_pem: string; order_key: string }) => {
  const certificate = new X509Certificate(ca_pem);
  return {
    ca_sha256: createHash("sha256").update(certificate.raw).digest("hex"),
    ca_not_after: certificate.validToDate.toISOString(),
    order_key,
  };
};

const getAuthority = readRoute({
  operationId: "getAuthority",
  method: "GET",
  path,
  tag,
  summary: "Show the hub's CA and order key, and how far a rotation of them has come",
  permission: "read",
  status: 200,
  response: Authority,
  read: async ({ deps }) => {
    const authority = deps.authority();
    await authority.refresh();
    const { trust, generation } = authority;
    const { hosts, informed, missing } = await countTrust(deps.db, trust.sequence, MOST_NAMED);
    return {
      generation,
      sequence: trust.sequence,
      current: keysOf(trust.current),
      next: trust.next === null ? null : { generation: trust.next.generation, ...keysOf(trust.next) },
      hosts,
      informed,
      missing,
    };
  },
});

const answerOf = (generation: number, sequence: number, kind: TrustKind) => ({
  body: { generation, sequence, phase: PHASES[kind] },
});
const PHASES = { announce: "announced", finish: "in_force", abort: "aborted" } as const satisfies Record<
  TrustKind,
  z.input<typeof AuthorityRotation>["phase"]
>;

async function write(authority: HubAuthority, tx: Tx, kind: TrustKind, about: Prepared | null, reason: string) {
  const { sequence, generation } = await authority.state(tx, kind, about);
  await recordDomainEvent(tx, {
    type: "authority.rotation.changed",
    subject: "authority",
    data: { generation, sequence, phase: PHASES[kind] },
  });
  const details = { generation, sequence, phase: PHASES[kind] };
  return { ...answerOf(generation, sequence, kind), audit: { target: "authority", reason, details } };
}

const startRotation = writeRoute({
  operationId: "startAuthorityRotation",
  method: "POST",
  path: `${path}/rotation`,
  tag,
  summary:
    "Make the next CA and order key, and tell hosts of them by the present key's word; nothing is signed by them yet",
  permission: "write",
  body: AuthorityRotationStart,
  status: 201,
  response: AuthorityRotation,
  before: ({ deps }) => deps.authority().prepareNext(),
  write: ({ body, deps }, tx, prepared) => write(deps.authority(), tx, "announce", prepared, body.reason),
});

const finishRotation = writeRoute({
  operationId: "finishAuthorityRotation",
  method: "POST",
  path: `${path}/rotation/finish`,
  tag,
  summary:
    "Put the announced CA and order key into force on every hub; refused while hosts do not know them, unless forced",
  permission: "write",
  body: AuthorityRotationFinish,
  status: 200,
  response: AuthorityRotation,
  before: async ({ deps }) => void (await deps.authority().refresh()),
  write: async ({ body, deps }, tx) => {
    const authority = deps.authority();
    const { hosts, informed, missing } = await countTrust(tx, authority.trust.sequence, 1);
    if (authority.trust.next !== null && informed < hosts && !body.force)
      throw new ApiError(
        "conflict",
        `${hosts - informed} of ${hosts} hosts do not know the next keys yet, e.g. ${missing[0]?.hostname ?? "one"}. Wait until they were connected (get-authority), or force it: a host that was off follows the change by itself when it comes back; one whose agent is older than this hub has to be upgraded first, or re-enrolled.`,
      );
    return write(authority, tx, "finish", null, body.reason);
  },
});

const abortRotation = writeRoute({
  operationId: "abortAuthorityRotation",
  method: "POST",
  path: `${path}/rotation/abort`,
  tag,
  summary: "Give up a rotation that is not finished: hosts forget the announced CA and order key",
  permission: "write",
  body: AuthorityRotationStart,
  status: 200,
  response: AuthorityRotation,
  before: async ({ deps }) => void (await deps.authority().refresh()),
  write: ({ body, deps }, tx) => write(deps.authority(), tx, "abort", null, body.reason),
});

export const authorityRoutes: readonly Route[] = [getAuthority, startRotation, finishRotation, abortRotation];
