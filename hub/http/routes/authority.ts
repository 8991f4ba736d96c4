import { createHash, X509Certificate } from "node:crypto";
import {
  Authority,
  AuthorityRotation,
  AuthorityRotationFinish,
  AuthorityRotationStart,
} from "../../../shared/api/authority.ts";
import { ApiError } from "../../../shared/api/errors.ts";
import { ROTATION_PHASES, type TrustKind } from "../../../shared/trust.ts";
import { countTrust } from "../../db/queries/authority-statements.ts";
import { recordDomainEvent } from "../../db/queries/domain-events.ts";
import type { Tx } from "../../db/tx.ts";
import type { HubAuthority, NextKeys } from "../../gateway/hub-authority.ts";
import { type Route, readRoute, writeRoute } from "../route.ts";

const path = "/api/v1/admin/authority";
const tag = "authority";
/** The largest number of hosts without the hub's next keys that an answer about a key rotation names. */
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
  summary: "Show the hub's CA and order key, and the progress of their rotation",
  permission: "read",
  right: "read_fleet",
  place: "hub",
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

async function write(authority: HubAuthority, tx: Tx, kind: TrustKind, next: NextKeys, reason: string) {
  const { sequence, generation } = await authority.state(tx, kind, next);
  const body = { generation, sequence, phase: ROTATION_PHASES[kind] };
  await recordDomainEvent(tx, { type: "authority.rotation.changed", subject: "authority", data: body });
  return { body, audit: { target: "authority", reason, details: body } };
}

const startRotation = writeRoute({
  operationId: "startAuthorityRotation",
  method: "POST",
  path: `${path}/rotation`,
  tag,
  summary:
    "Create the next CA and order key, and announce them to hosts with the present key's signature; the hub does not use them yet",
  permission: "write",
  right: "manage_hub",
  place: "hub",
  body: AuthorityRotationStart,
  status: 201,
  response: AuthorityRotation,
  before: ({ deps }) => deps.authority().prepareNext(),
  write: ({ body, deps }, tx, next) => write(deps.authority(), tx, "announce", next, body.reason),
});

const finishRotation = writeRoute({
  operationId: "finishAuthorityRotation",
  method: "POST",
  path: `${path}/rotation/finish`,
  tag,
  summary:
    "Make the announced CA and order key valid on every hub; refused while hosts do not know them, unless forced",
  permission: "write",
  right: "manage_hub",
  place: "hub",
  body: AuthorityRotationFinish,
  status: 200,
  response: AuthorityRotation,
  before: ({ deps }) => deps.authority().haveNext(),
  write: async ({ body, deps }, tx, next) => {
    const { hosts, informed, missing } = await countTrust(tx, next.sequence, 1);
    if (next.keys !== null && informed < hosts && !body.force)
      throw new ApiError(
        "conflict",
        `${hosts - informed} of ${hosts} hosts do not know the next keys yet, e.g. ${missing[0]?.hostname ?? "one"}. Wait until they have connected (get-authority), or force the change. A host that is off follows the change when it comes back; a host whose agent is older than this hub must be upgraded first, or re-enrolled.`,
      );
    return write(deps.authority(), tx, "finish", next, body.reason);
  },
});

const abortRotation = writeRoute({
  operationId: "abortAuthorityRotation",
  method: "POST",
  path: `${path}/rotation/abort`,
  tag,
  summary: "Abort an unfinished rotation: hosts forget the announced CA and order key",
  permission: "write",
  right: "manage_hub",
  place: "hub",
  body: AuthorityRotationStart,
  status: 200,
  response: AuthorityRotation,
  before: ({ deps }) => deps.authority().lookAtNext(),
  write: ({ body, deps }, tx, next) => write(deps.authority(), tx, "abort", next, body.reason),
});

export const authorityRoutes: readonly Route[] = [getAuthority, startRotation, finishRotation, abortRotation];
