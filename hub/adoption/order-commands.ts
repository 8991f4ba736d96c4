import { type AdoptionCommandsCreate, MOST_ADOPTED } from "../../shared/api/adoptions.ts";
import { ApiError } from "../../shared/api/errors.ts";
import type { NodeId, SiteId } from "../../shared/ids.ts";
import type { Secret } from "../../shared/secret.ts";
import { replaceEnrollmentTokens } from "../db/queries/enrollment-tokens.ts";
import { lockWaitingHosts, type WaitingHost } from "../db/queries/node-adoptions.ts";
import { nextGenerations } from "../db/queries/nodes.ts";
import type { Tx } from "../db/tx.ts";
import { newToken, tokenHash } from "../node/enrollment-tokens.ts";
import { provingMacs } from "../node/same-host.ts";

export interface OrderedCommand {
  readonly host: WaitingHost;
  readonly token: Secret;
}
export interface OrderedCommands {
  readonly expiresAt: Date;
  readonly leftOut: number;
  readonly commands: readonly OrderedCommand[];
}

/**
 * Issues an enrollment token of its own for each host, bound to the MAC addresses of the host's machine (decision N8). The database stores only the
 * hashes of the tokens. If a request names a node for which no enrollment command is possible, the hub issues no token for any node of the request.
 */
export async function orderCommands(tx: Tx, siteId: SiteId, request: AdoptionCommandsCreate): Promise<OrderedCommands> {
  const named = request.node_ids ?? null;
  const hosts = await lockWaitingHosts(tx, siteId, named);
  if (named !== null) mustAllGetCommands(named, hosts);
  const byName = hosts.filter(canRun).sort((a, b) => (a.hostname < b.hostname ? -1 : 1));
  const able = byName.slice(0, MOST_ADOPTED);
  const commands = able.map((host): OrderedCommand => ({ host, token: newToken() }));
  const issued = commands.map(({ host, token }) => ({
    nodeId: host.nodeId,
    tokenSha256: tokenHash(token.reveal()),
    maasSystemId: host.systemId,
    boundMacs: provingMacs(host.macs),
  }));
  await nextGenerations(
    tx,
    issued.map(({ nodeId }) => nodeId),
  );
  const expiresAt = await replaceEnrollmentTokens(tx, issued, request.token_ttl_seconds);
  return { expiresAt, leftOut: hosts.length - able.length, commands };
}

const canRun = ({ deployed, macs }: WaitingHost): boolean => deployed && provingMacs(macs).length > 0;

function mustAllGetCommands(named: readonly NodeId[], hosts: readonly WaitingHost[]): void {
  const errors = named.flatMap((id, index) => {
    const host = hosts.find(({ nodeId }) => nodeId === id);
    if (host !== undefined && canRun(host)) return [];
    const message =
      host === undefined
        ? `node ${id} is no adopted node of the site that waits for its agent`
        : host.deployed
          ? `MAAS knows no MAC address that only machine ${host.systemId} can have`
          : `machine ${host.systemId} of ${host.hostname} is not Deployed in MAAS`;
    return [{ pointer: `/node_ids/${index}`, message }];
  });
  const [first] = errors;
  if (first === undefined) return;
  throw new ApiError(
    "conflict",
    `No command was issued, because ${errors.length} of the ${named.length} nodes can get none: ${first.message}. Leave these nodes out. A node in service is enrolled again with re-enroll-node.`,
    { errors },
  );
}
