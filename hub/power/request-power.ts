import { ApiError } from "../../shared/api/errors.ts";
import { RESTORED } from "../../shared/health-report.ts";
import type { AllocationId, NodeId } from "../../shared/ids.ts";
import type { PowerVerb } from "../../shared/power.ts";
import { lockBoth } from "../allocations/lock-both.ts";
import { readOpenSession } from "../db/queries/agent-sessions.ts";
import { lockOpenAllocation } from "../db/queries/allocations.ts";
import { readMaasSystemId } from "../db/queries/decommissions.ts";
import { lockNode } from "../db/queries/nodes.ts";
import { countPowerActions, insertPowerAction, newestPowerActions } from "../db/queries/power-actions.ts";
import { lockOpenCase } from "../db/queries/repair-cases.ts";
import { operationOfNode } from "../db/queries/workflow-subjects.ts";
import type { AllocationRow, Node, PowerAction } from "../db/schema/index.ts";
import type { Tx } from "../db/tx.ts";
import { type Claimant, isClaimant } from "../repair/claim-repair.ts";
import { heldError } from "../workflows/decommission/start-decommission.ts";
import { DEADLINE_SECONDS } from "./next-step.ts";
import { hasUnknownTenant } from "./standing.ts";
import { tellPower } from "./tell.ts";

/** The largest number of power actions of one node in `WITHIN_SECONDS`, because more of them would wear the host out and disturb its tenant's work. */
const MOST_ACTIONS = 6;
const WITHIN_SECONDS = 3600;

export interface PowerAsked {
  readonly verb: PowerVerb;
  readonly immediate: boolean;
  readonly reason: string;
  readonly by: Claimant;
}

/** Requests a power action for the machine of an instance. If `requestInstancePower` refuses the request, it throws ApiError and writes nothing. */
export async function requestInstancePower(tx: Tx, id: AllocationId, asked: PowerAsked): Promise<PowerAction> {
  const { allocation, node } = await lockBoth(tx, id);
  if (allocation.status === "ending" || allocation.status === "ended" || node === null)
    throw new ApiError(
      "conflict",
      `Instance ${id} is ${allocation.status === "ended" || node === null ? "over" : "ending"}, so its power is not switched any more.`,
      { context: { allocation_id: id } },
    );
  return requestPower(tx, node, allocation, asked);
}

/** Requests a power action for a node's machine; if the node has a tenant, the request must say that it knows of the tenant. */
export async function requestNodePower(
  tx: Tx,
  nodeId: NodeId,
  asked: PowerAsked & { readonly knowsTenant: boolean },
): Promise<PowerAction> {
  const node = await lockNode(tx, nodeId);
  if (node === null) throw new ApiError("not_found", `There is no node ${nodeId}.`);
  const allocation = await lockOpenAllocation(tx, nodeId);
  if (allocation !== null && !asked.knowsTenant)
    throw new ApiError(
      "allocation_exists",
      `Node ${node.hostname} is allocated to ${allocation.tenant} (allocation ${allocation.id}, ${allocation.status}). Ask again with acknowledge_tenant if the tenant's work may end.`,
      { context: { node_id: nodeId, allocation_id: allocation.id } },
    );
  return requestPower(tx, node, allocation, asked);
}

/** The caller has locked the node, and then its allocation. */
async function requestPower(
  tx: Tx,
  node: Node,
  allocation: AllocationRow | null,
  { verb, immediate, reason, by }: PowerAsked,
): Promise<PowerAction> {
  const { siteId, maasSystemId } = await mustHaveMachine(tx, node);
  const holder = await operationOfNode(tx, node.id);
  if (holder !== null) throw heldError(node, holder, "its power is not switched");
  await mustNotBeRepairedByOther(tx, node, by);
  await mustKnowTenant(tx, node);
  if (verb !== "on") await mustNotBeTooOften(tx, node);
  const action = await insertPowerAction(tx, {
    nodeId: node.id,
    hostname: node.hostname,
    generation: node.generation,
    siteId,
    maasSystemId,
    allocationId: allocation?.id ?? null,
    tenant: allocation?.tenant ?? null,
    verb,
    immediate,
    requestedBy: by.name,
    requesterTenant: by.tenant,
    reason,
    bootId: (await readOpenSession(tx, node.id, node.generation))?.bootId ?? null,
    deadlineSeconds: DEADLINE_SECONDS[verb],
  });
  if (action === null) throw await running(tx, node);
  await tellPower(tx, action, by.name, reason);
  return action;
}

async function mustHaveMachine(
  tx: Tx,
  node: Node,
): Promise<{ readonly siteId: NonNullable<Node["siteId"]>; readonly maasSystemId: string }> {
  const maasSystemId = await readMaasSystemId(tx, node.id);
  const isInService = node.status === "active" || node.status === "offline" || node.status === "quarantined";
  const why = !isInService
    ? `it is ${node.status}, and only a node in service is switched`
    : "it has no machine in MAAS, so Muster cannot reach its power";
  if (isInService && maasSystemId !== null && node.siteId !== null) return { siteId: node.siteId, maasSystemId };
  throw new ApiError("conflict", `The power of node ${node.hostname} cannot be switched: ${why}.`, {
    context: { node_id: node.id, node_status: node.status },
  });
}

/**
 * While somebody repairs the machine, nobody else may switch its power or install its host anew. Returns true if the caller repairs the machine, and
 * false if nobody repairs it.
 */
export async function mustNotBeRepairedByOther(
  tx: Tx,
  node: Node,
  by: Claimant,
  does = "switches its power",
): Promise<boolean> {
  const repair = await lockOpenCase(tx, node.id);
  if (repair?.state !== "claimed") return false;
  if (isClaimant(repair, by)) return true;
  throw new ApiError(
    "conflict",
    `Node ${node.hostname} is repaired by ${repair.claimedBy} until ${repair.claimUntil?.toISOString()} (repair ${repair.id}), who alone ${does}. Wait for the end of the repair, or ask ${repair.claimedBy}.`,
    { context: { node_id: node.id, repair_id: repair.id } },
  );
}

/** After a restore of the database, the host may have another tenant than the older database says. */
export async function mustKnowTenant(tx: Tx, node: Node): Promise<void> {
  if (!(await hasUnknownTenant(tx, node.id))) return;
  throw new ApiError(
    "conflict",
    `The hub's database was restored, so node ${node.hostname} may have another tenant than the database says. Look at the host, and remove the health override ${RESTORED} with remove-node-health-override; then ask again.`,
    { context: { node_id: node.id } },
  );
}

async function mustNotBeTooOften(tx: Tx, node: Node): Promise<void> {
  if ((await countPowerActions(tx, node.id, WITHIN_SECONDS)) < MOST_ACTIONS) return;
  throw new ApiError(
    "rate_limited",
    `The power of node ${node.hostname} was switched ${MOST_ACTIONS} times within an hour. Ask again later.`,
    { context: { node_id: node.id } },
  );
}

async function running(tx: Tx, node: Node): Promise<ApiError> {
  const now = (await newestPowerActions(tx, [node.id])).get(node.id);
  return new ApiError(
    "operation_exists",
    `Power ${now?.verb ?? "action"} of node ${node.hostname} is under way at the request of ${now?.requestedBy ?? "somebody"} (${now?.waitReason ?? "it has just begun"}). Wait for its end, at the latest at ${now?.deadlineAt.toISOString() ?? "its deadline"}.`,
    { context: { node_id: node.id } },
  );
}
