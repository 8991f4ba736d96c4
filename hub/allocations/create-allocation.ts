import { randomUUID } from "node:crypto";
import type { AllocationCreate } from "../../shared/api/allocations.ts";
import { ApiError } from "../../shared/api/errors.ts";
import { isOwnOverride } from "../../shared/health-report.ts";
import { AllocationId, type NodeId, type SiteId } from "../../shared/ids.ts";
import { insertAllocation } from "../db/queries/allocations.ts";
import { databaseNow } from "../db/queries/clock.ts";
import { readSite } from "../db/queries/maas-sites.ts";
import { readSku } from "../db/queries/skus.ts";
import { enqueueTask } from "../db/queries/tasks.ts";
import { lowestUid, reserveUid } from "../db/queries/tenant-uids.ts";
import type { AllocationRow, Node, Task } from "../db/schema/index.ts";
import type { Tx } from "../db/tx.ts";
import { tellAllocation } from "../node/allocation-moves.ts";
import type { Obstacle } from "../node/schedulable.ts";
import { heldError, mustLockNode } from "../workflows/decommission/start-decommission.ts";
import { obstaclesToAllocation, readCandidates, takeFreeNode, type WantedNode } from "./free-node.ts";
import { keysOfNew } from "./named-keys.ts";

/**
 * The deadline in seconds of the task in which the agent makes the tenant's account. If the agent has not made the account before the deadline, the
 * allocation becomes `failed` (docs/timeouts.md).
 */
const GRANT_DEADLINE_SECONDS = 900;

/**
 * Allocates a node to a tenant (architecture 14.1): the node that the request names, or a free node of the SKU at the site. One transaction stores
 * the allocation and queues the task that makes the tenant's account. If `createAllocation` refuses the request, it throws ApiError and writes
 * nothing.
 */
export async function createAllocation(
  tx: Tx,
  request: AllocationCreate,
  createdBy: string,
  { tolerates = () => false }: Despite = {},
): Promise<AllocationRow> {
  await mustEndLater(tx, request.ends_at);
  return await allocateNode(tx, request, createdBy, await nodeFor(tx, request, tolerates));
}

/** The part of a request for an allocation that is independent of the node: all fields except `node_id`, `site_id` and `sku_id`. */
export type AllocationTerms = Omit<AllocationCreate, "node_id" | "site_id" | "sku_id">;

/** Allocates a free node that this transaction has locked. */
export async function allocateNode(
  tx: Tx,
  request: AllocationTerms,
  createdBy: string,
  { node, despite }: Taken,
): Promise<AllocationRow> {
  const id = AllocationId.parse(randomUUID());
  const keys = { sshKeyIds: request.ssh_key_ids, sshKeyGroupIds: request.ssh_key_group_ids };
  const isNaming = keys.sshKeyIds.length + keys.sshKeyGroupIds.length > 0;
  const sshKeys = isNaming
    ? await keysOfNew(tx, { ...keys, tenant: request.tenant, siteId: node.siteId, hostname: node.hostname })
    : request.ssh_keys;
  const account = { loginUser: request.login_user, sshKeys, grantsRoot: request.root };
  const task = await queueGrant(tx, { id, nodeId: node.id, ...account });
  const row = await insertAllocation(tx, {
    id,
    nodeId: node.id,
    siteId: node.siteId,
    hostname: node.hostname,
    generation: node.generation,
    tenant: request.tenant,
    ...account,
    ...keys,
    name: request.name,
    description: request.description,
    labels: request.labels,
    allowUnhealthyMachine: request.allow_unhealthy_machine,
    unhealthyBecause: despite,
    grantTaskId: task.id,
    createdBy,
    endsAt: request.ends_at === null ? null : new Date(request.ends_at),
  });
  if (row === null) throw new ApiError("allocation_exists", `Node ${node.hostname} has an open allocation already.`);
  const although = despite.length === 0 ? "" : `, although health overrides bar the machine (${despite.join(", ")})`;
  await tellAllocation(tx, row, createdBy, `The agent makes the tenant's account${although}`);
  return row;
}

type Account = Pick<AllocationRow, "id" | "nodeId" | "loginUser" | "sshKeys" | "grantsRoot">;

/**
 * Queues the agent's task that makes the tenant's account for an allocation. If a former task for the account failed, the new task uses what the
 * failed task has made on the host.
 */
export const queueGrant = async (tx: Tx, account: Account): Promise<Task> =>
  orderAccount(tx, account, await reserveUid(tx, account.nodeId));

/** Queues the agent's task that brings other keys to a tenant's account, which exists already. */
export const queueKeys = async (tx: Tx, account: Account): Promise<Task> =>
  orderAccount(tx, account, await lowestUid(tx, account.nodeId));

async function orderAccount(
  tx: Tx,
  { id, nodeId, loginUser, sshKeys, grantsRoot }: Account,
  lowest: number | null,
): Promise<Task> {
  const account = { allocation_id: id, login_user: loginUser, ssh_keys: sshKeys, root: grantsRoot };
  const { task } = await enqueueTask(tx, {
    nodeId,
    type: "allocation.grant_user",
    input: { ...account, plan: false, ...(lowest === null ? {} : { lowest_uid: lowest }) },
    idempotencyKey: `allocation.grant_user/${id}/${randomUUID()}`,
    deadlineSeconds: GRANT_DEADLINE_SECONDS,
  });
  return task;
}

export async function mustEndLater(tx: Tx, endsAt: string | null): Promise<void> {
  if (endsAt === null) return;
  const now = await databaseNow(tx);
  if (Date.parse(endsAt) > now.getTime()) return;
  throw new ApiError(
    "validation_failed",
    `ends_at must be in the future; it is ${now.toISOString()} by the clock of the hub's database.`,
    { errors: [{ pointer: "/ends_at", message: "is not in the future" }] },
  );
}

/**
 * For a request that names its node: the obstacles that do not prevent the allocation, for example in a repair, which allocates a node because it is
 * faulty.
 */
export interface Despite {
  readonly tolerates?: (obstacle: Obstacle) => boolean;
}

type Tolerates = NonNullable<Despite["tolerates"]>;

/** The node of an allocation, and the sources of the health overrides that forbid the allocation unless the request overlooks them. */
interface Taken {
  readonly node: Node;
  readonly despite: string[];
}

async function nodeFor(tx: Tx, request: AllocationCreate, tolerates: Tolerates): Promise<Taken> {
  const { node_id, site_id, sku_id, root, allow_unhealthy_machine: mayBeUnhealthy } = request;
  if (node_id !== undefined) return namedNode(tx, node_id, root, { tolerates, mayBeUnhealthy });
  if (site_id === undefined || sku_id === undefined)
    throw new Error("the request names neither a node nor a SKU and a site");
  return { node: await takeFreeNode(tx, await wantedNode(tx, { site_id, sku_id, root })), despite: [] };
}

/** Returns which nodes fit a request that names a SKU and a site, or throws ApiError if one of them does not exist. */
export async function wantedNode(
  tx: Tx,
  { site_id, sku_id, root }: { readonly site_id: SiteId; readonly sku_id: string; readonly root: boolean },
): Promise<WantedNode> {
  const unknown = (field: string, what: string) =>
    new ApiError("reference_unknown", `There is no ${what}. List them and use one that exists.`, {
      errors: [{ pointer: `/${field}`, message: "names nothing that exists" }],
    });
  const site = await readSite(tx, site_id);
  if (site === null) throw unknown("site_id", `site ${site_id}`);
  if ((await readSku(tx, sku_id)) === null) throw unknown("sku_id", `SKU ${sku_id}`);
  return { siteId: site_id, siteName: site.name, sku: sku_id, root };
}

/**
 * True for a health override that a request with `allow_unhealthy_machine` overlooks. No request can overlook a health override that Muster itself
 * sets, because nobody knows whose data is on the host (decision H1).
 */
const mayBeOverlooked = ({ kind, source }: Obstacle): boolean =>
  kind === "health_override" && source !== undefined && !isOwnOverride(source);

/** Locks the node that a request for an allocation names. `namedNode` throws an ApiError with the reason if the node cannot be allocated. */
async function namedNode(
  tx: Tx,
  nodeId: NodeId,
  root: boolean,
  { tolerates, mayBeUnhealthy }: { readonly tolerates: Tolerates; readonly mayBeUnhealthy: boolean },
): Promise<Taken> {
  const node = await mustLockNode(tx, nodeId);
  const [candidate] = await readCandidates(tx, { id: nodeId }, { limit: 1, after: null });
  if (candidate === undefined) throw new Error(`node ${nodeId} is locked and cannot be read`);
  const { row, heldBy } = candidate;
  const found = obstaclesToAllocation(candidate, root).filter((one) => !tolerates(one));
  const overlooked = mayBeUnhealthy ? found.filter(mayBeOverlooked) : [];
  const obstacles = found.filter((one) => !overlooked.includes(one));
  if (obstacles.length === 0) return { node, despite: overlooked.flatMap(({ source }) => source ?? []) };
  const context = { node_id: nodeId, node_status: node.status };
  if (row.allocation !== null)
    throw new ApiError(
      "allocation_exists",
      `Node ${node.hostname} is allocated to ${row.allocation.tenant} (allocation ${row.allocation.id}, ${row.allocation.status}). Release that allocation first, or take another node.`,
      { context: { ...context, allocation_id: row.allocation.id } },
    );
  if (heldBy !== null) throw heldError(node, heldBy, "it cannot be allocated");
  const why = obstacles.map(({ text }) => text).join("; ");
  const or = obstacles.every(mayBeOverlooked) ? ". Or ask with allow_unhealthy_machine" : "";
  const onlyRoot = obstacles.every(({ kind }) => kind === "root_not_allowed");
  throw new ApiError(
    onlyRoot ? "conflict" : "node_not_schedulable",
    `Node ${node.hostname} cannot be allocated: ${why}${or}.`,
    { context },
  );
}
