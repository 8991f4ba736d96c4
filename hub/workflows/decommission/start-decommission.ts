import { randomUUID } from "node:crypto";
import type {
  DecommissionCreate,
  DecommissionCreated,
  DrainCreate,
  ReleaseCreate,
  RemoveCreate,
  StorageCleanupCreate,
} from "../../../shared/api/decommissions.ts";
import { ApiError } from "../../../shared/api/errors.ts";
import { type AllocationId, type BatchId, type NodeId, WorkflowId } from "../../../shared/ids.ts";
import type { NodeStatus } from "../../../shared/node-status.ts";
import type { DecommissionMode } from "../../../shared/workflow-status.ts";
import { insertDecommissions, readPriorStatus } from "../../db/queries/decommissions.ts";
import { revokeEnrollmentTokens } from "../../db/queries/enrollment-tokens.ts";
import { type BoundMachine, readBoundMachines } from "../../db/queries/node-machines.ts";
import { lockNode } from "../../db/queries/nodes.ts";
import { onboardingOfHost, releaseSubjectsOf, subjectOf, takeSubjects } from "../../db/queries/workflow-subjects.ts";
import { insertWorkflows } from "../../db/queries/workflows.ts";
import type { Node, NodeDecommission } from "../../db/schema/index.ts";
import { inSavepoint, type Tx } from "../../db/tx.ts";
import { type BaselineLack, lacksNothing, toldLack } from "../../node/baseline-lack.ts";
import { moveNode } from "../../node/move-node.ts";
import { adoptEnding, mustNotTakeFromTenant } from "./allocated-node.ts";
import { firstStageOf } from "./decommission.ts";
import { deploysAnew, KEEPS_STATUS } from "./keeps-status.ts";
import { MAY_BEGIN } from "./may-begin.ts";
import { factsOf, readStartFacts, type StartFacts } from "./start-facts.ts";
import { holdOwnMachine, takeLeftMachine } from "./take-left-machine.ts";
import { staysDeployed } from "./uninstall-work.ts";

/** The request for a reinstall names the allocation, which keeps its node. */
export interface ReinstallRequest {
  readonly mode: "reinstall";
  readonly allocation_id: AllocationId;
  readonly reason: string;
  readonly agent_wait_seconds: number;
}

export type DecommissionRequest =
  | ({ readonly mode: "drain" } & DrainCreate)
  | ({ readonly mode: "remove" } & RemoveCreate)
  | ({ readonly mode: "release" } & ReleaseCreate)
  | ({ readonly mode: "storage_cleanup" } & StorageCleanupCreate)
  | ReinstallRequest
  | DecommissionCreate;

export async function mustLockNode(tx: Tx, nodeId: NodeId): Promise<Node> {
  const node = await lockNode(tx, nodeId);
  if (node === null) throw new ApiError("not_found", `There is no node ${nodeId}.`);
  return node;
}

/** If `startDecommission` refuses the request, it throws an ApiError and writes nothing. */
export async function startDecommission(
  tx: Tx,
  nodeId: NodeId,
  request: DecommissionRequest,
  requestedBy: string,
): Promise<DecommissionCreated> {
  const node = await mustLockNode(tx, nodeId);
  const started = (await startDecommissions(tx, [node], { request, requestedBy, batchId: null })).get(nodeId);
  if (started === undefined) throw new ApiError("internal_error", "The decommission was not written.");
  if (started instanceof ApiError) throw started;
  return started;
}

export interface DecommissionOrder {
  readonly request: DecommissionRequest;
  readonly requestedBy: string;
  readonly batchId: BatchId | null;
}
type Started = Map<NodeId, DecommissionCreated | ApiError>;
type Claimed = { readonly id: WorkflowId; readonly node: Node };
/** A decommission that passed every check and can begin, with values for its database rows. */
type Prepared = Claimed & Pick<NodeDecommission, "maasSystemId" | "priorStatus"> & { readonly facts: StartFacts };

/**
 * Begins a decommission on each node, and returns for each node what began or the error that refused it. The hub undoes what it wrote for a node
 * whose decommission is refused. The number of SQL statements of `startDecommissions` does not grow with the number of nodes, except for nodes with a
 * tenant or without a host in service, and for a full decommission. The caller of `startDecommissions` has locked the nodes.
 */
export async function startDecommissions(tx: Tx, nodes: readonly Node[], order: DecommissionOrder): Promise<Started> {
  const started: Started = new Map();
  if (nodes.length === 0) return started;
  const { request } = order;
  const ids = nodes.map(({ id }) => id);
  const machines = await readBoundMachines(tx, ids);
  const claims = nodes.map((node) => ({ id: WorkflowId.parse(randomUUID()), node }));
  const holders = await holdNodes(tx, claims, request.mode, machines);
  const facts = await readStartFacts(tx, ids, request.mode, machines);
  const prepared: Prepared[] = [];
  const refused: Claimed[] = [];
  for (const claimed of claims) {
    const { id, node } = claimed;
    const holder = holders.get(id) ?? null;
    const one =
      holder === null
        ? await prepare(tx, claimed, order, factsOf(facts, node.id))
        : heldError(node, holder, `no ${request.mode} can begin`);
    if (!(one instanceof ApiError)) prepared.push(one);
    else {
      started.set(node.id, one);
      refused.push(claimed);
    }
  }
  await write(tx, prepared, order);
  for (const one of prepared) started.set(one.node.id, await createdOf(tx, one, request));
  return startAfterRefused(tx, { started, refused, holders }, order);
}

/**
 * Frees the nodes, hosts and BMCs that refused decommissions had claimed, and tries each decommission again whose node, host or BMC was claimed by a
 * refused decommission. Two nodes of one request may need the same BMC, for example after a host was onboarded under another name.
 */
async function startAfterRefused(
  tx: Tx,
  {
    started,
    refused,
    holders,
  }: { started: Started; refused: readonly Claimed[]; holders: ReadonlyMap<WorkflowId, WorkflowId> },
  order: DecommissionOrder,
): Promise<Started> {
  await releaseSubjectsOf(
    tx,
    refused.map(({ id }) => id),
  );
  const gone = new Set(refused.map(({ id }) => id));
  const again = refused.flatMap(({ id, node }) => {
    const holder = holders.get(id);
    return holder !== undefined && gone.has(holder) ? [node] : [];
  });
  for (const node of again)
    for (const [nodeId, one] of await startDecommissions(tx, [node], order)) started.set(nodeId, one);
  return started;
}

/**
 * Checks whether a decommission may begin on a node that no other operation holds. A savepoint undoes what the checks have written for a node whose
 * decommission is refused.
 */
async function prepare(
  tx: Tx,
  claimed: Claimed,
  order: DecommissionOrder,
  facts: StartFacts,
): Promise<Prepared | ApiError> {
  const { node } = claimed;
  const mayWrite =
    facts.allocation !== null ||
    order.request.mode === "full_decommission" ||
    ["deleted", "enrolling", "bootstrap_issued"].includes(node.status);
  try {
    return mayWrite
      ? await inSavepoint(tx, () => check(tx, claimed, order, facts))
      : await check(tx, claimed, order, facts);
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
}

async function check(tx: Tx, claimed: Claimed, order: DecommissionOrder, facts: StartFacts): Promise<Prepared> {
  const { id, node } = claimed;
  const { request, requestedBy } = order;
  const { mode } = request;
  const may = MAY_BEGIN[mode][node.status];
  if (may !== true) {
    const message = `Node ${node.hostname} is ${node.status}, so no ${mode} can begin. ${may}`;
    throw new ApiError("conflict", message, { context: { node_id: node.id, node_status: node.status } });
  }
  await mustNotTakeFromTenant(tx, node, request, { allocation: facts.allocation, actor: requestedBy, operation: id });
  if (mode === "storage_cleanup") mustHaveBaseline(node, facts.lack);
  const maasSystemId = node.status === "deleted" ? await takeLeftMachine(tx, node, id) : facts.maasSystemId;
  if (isReleasing(mode)) mustHaveMachine(node, maasSystemId, mode, facts);
  if (mode === "full_decommission" && maasSystemId !== null) await holdOwnMachine(tx, node, id, maasSystemId);
  return { ...claimed, facts, maasSystemId, priorStatus: await priorStatusOf(tx, node, request.reason) };
}

async function write(
  tx: Tx,
  prepared: readonly Prepared[],
  { request, requestedBy, batchId }: DecommissionOrder,
): Promise<void> {
  if (prepared.length === 0) return;
  const { mode, reason } = request;
  const stage = firstStageOf(mode);
  await insertWorkflows(
    tx,
    prepared.map(({ id, node }) => ({
      id,
      kind: mode,
      siteId: node.siteId,
      batchId,
      stage,
      input: inputOf(node.id, request),
      requestedBy,
    })),
  );
  await insertDecommissions(
    tx,
    prepared.map(({ id, node, maasSystemId, priorStatus }) => ({
      decommissionId: id,
      nodeId: node.id,
      siteId: node.siteId,
      hostname: node.hostname,
      maasSystemId,
      mode,
      reason,
      priorStatus,
      priorQuarantinedBy: node.quarantinedBy,
    })),
  );
  if (mode === "soft_reset" || mode === "reimage")
    for (const { id, facts } of prepared) await adoptEnding(tx, facts.allocation, id);
}

async function createdOf(
  tx: Tx,
  { id, node, maasSystemId, facts }: Prepared,
  { mode }: DecommissionRequest,
): Promise<DecommissionCreated> {
  const warning =
    mode === "remove"
      ? await staysDeployed(tx, node, maasSystemId)
      : mode === "soft_reset"
        ? willNotBeClean(node, facts.lack)
        : null;
  return { decommission_id: id, node_id: node.id, mode, status: "pending", warning };
}

const RELEASING = [
  "release",
  "reimage",
  "full_decommission",
  "reinstall",
] as const satisfies readonly DecommissionMode[];
type Releasing = (typeof RELEASING)[number];
const isReleasing = (mode: DecommissionMode): mode is Releasing => (RELEASING as readonly string[]).includes(mode);

/**
 * Throws an ApiError if the node has no machine in MAAS that can be released. A node in manual mode has no machine in MAAS, and a node in another
 * mode may have lost its binding to its machine.
 */
function mustHaveMachine(
  node: Node,
  maasSystemId: string | null,
  mode: Releasing,
  { hasProfile }: Pick<StartFacts, "hasProfile">,
): void {
  const todo = deploysAnew(mode) ? "deployed again" : "released";
  const refuse = (why: string) =>
    new ApiError("conflict", `No machine can be ${todo} for node ${node.hostname}: ${why}`, {
      context: { node_id: node.id },
    });
  if (node.onboardingMode === "manual") throw refuse("it was installed by hand, so no MAAS manages it.");
  if (node.onboardingMode === "external") throw refuse("an external system provisions it, so no MAAS manages it.");
  if (maasSystemId === null || !hasProfile)
    throw refuse("it is bound to no machine in MAAS. Find the machine there, or drain and remove the node.");
}

/**
 * Refuses a storage cleanup of a node without a complete baseline (snapshot of the clean host), because the stage `validate_clean_node` could then
 * only quarantine the node.
 */
function mustHaveBaseline(node: Node, lack: BaselineLack): void {
  if (lacksNothing(lack)) return;
  throw new ApiError(
    "conflict",
    `Node ${node.hostname} has ${toldLack(lack)}, so no storage cleanup could show that its host is clean. Wait until the hub has taken the baseline (get-node-baseline), or use take-node-baseline.`,
    { context: { node_id: node.id } },
  );
}

/**
 * Warns that a soft reset cannot find the host clean if the snapshot of the clean host (the baseline) is missing or incomplete. The soft reset begins
 * even if it cannot find the host clean, because it removes the account and the data of a tenant whose allocation has ended.
 */
const willNotBeClean = (node: Node, lack: BaselineLack): string | null =>
  lacksNothing(lack)
    ? null
    : `Node ${node.hostname} has ${toldLack(lack)}, so the soft reset cannot show that the host is clean, and ends with the node in quarantine. Reimage the node instead, or cancel and use take-node-baseline if no tenant left anything.`;

/**
 * Returns the node's status that a cancel of the decommission restores. If an earlier drain left the node `draining`, the prior status is the status
 * before the earlier drain, for example `quarantined`.
 */
async function priorStatusOf(tx: Tx, node: Node, reason: string): Promise<NodeStatus> {
  if (node.status === "enrolling") return leaveEnrolling(tx, node, reason);
  if (node.status === "bootstrap_issued") return giveUpWaiting(tx, node, reason);
  if (node.status !== "draining") return node.status;
  return (await readPriorStatus(tx, node.id)) ?? node.status;
}

/**
 * A failed onboarding owns its node until an operator cancels the onboarding, so `leaveEnrolling` refuses the drain. An `enrolling` node without an
 * onboarding becomes `quarantined`, from which a drain can begin.
 */
async function leaveEnrolling(tx: Tx, node: Node, reason: string): Promise<NodeStatus> {
  const onboarding = node.siteId === null ? null : await onboardingOfHost(tx, node.siteId, node.hostname);
  if (onboarding !== null) {
    throw new ApiError(
      "conflict",
      `Node ${node.hostname} is being onboarded, so no drain can begin. Wait until it is active, or cancel onboarding ${onboarding}.`,
      { context: { node_id: node.id, node_status: node.status, onboarding_id: onboarding } },
    );
  }
  await moveNode(tx, node.id, { from: "enrolling", to: "quarantined", owner: "operator" }, reason);
  return "quarantined";
}

/** Retires a node whose host never enrolled, and makes the node's bootstrap command invalid. */
async function giveUpWaiting(tx: Tx, node: Node, reason: string): Promise<NodeStatus> {
  await revokeEnrollmentTokens(tx, node.id);
  await moveNode(tx, node.id, { from: "bootstrap_issued", to: "retired", owner: "operator" }, reason);
  return "retired";
}

const inputOf = (nodeId: NodeId, request: DecommissionRequest) => ({
  node_id: nodeId,
  ...(request.mode === "release" ? {} : { agent_wait_seconds: request.agent_wait_seconds }),
  ...(request.mode === "drain" ? { deadline_seconds: request.deadline_seconds, force: request.force } : {}),
  // A full decommission or a mode in `KEEPS_STATUS` ends all user sessions at once, because no tenant has a right to the node any more.
  ...(KEEPS_STATUS[request.mode] || request.mode === "full_decommission" ? { force: true } : {}),
  ...(request.mode === "soft_reset" ? { storage_cleanup: request.storage_cleanup } : {}),
  ...(request.mode === "storage_cleanup"
    ? { storage_cleanup: request.scope, purge_disks: request.purge_disks ?? [] }
    : {}),
  ...(request.mode === "reimage" ? { erase: request.erase } : {}),
  ...(request.mode === "reinstall" ? { allocation_id: request.allocation_id } : {}),
  ...(request.mode === "full_decommission"
    ? {
        erase: request.erase,
        storage_cleanup: request.storage_cleanup,
        remove_maas_record: request.remove_maas_record,
        force_release_allocation: request.force_release_allocation ?? false,
      }
    : {}),
});

/** A reimage, reinstall or full decommission also holds the host's name and BMC, so that no onboarding begins on the host. */
function subjectsOf(node: Node, mode: DecommissionMode, bmc: string | null): string[] {
  const own = [subjectOf.node(node.id)];
  if (!deploysAnew(mode) && mode !== "full_decommission") return own;
  if (bmc === null || node.siteId === null) return own;
  return [...own, subjectOf.host(node.siteId, node.hostname), subjectOf.bmc(node.siteId, bmc)];
}

/**
 * Claims for each decommission what it needs, such as the node, the host or the BMC, and returns for each refused decommission the workflow that
 * holds its node, host or BMC. A failed operation still holds its node, because an operator can resume the operation.
 */
async function holdNodes(
  tx: Tx,
  claims: readonly Claimed[],
  mode: DecommissionMode,
  machines: ReadonlyMap<NodeId, BoundMachine>,
): Promise<ReadonlyMap<WorkflowId, WorkflowId>> {
  const wanted = claims.flatMap(({ id, node }) =>
    subjectsOf(node, mode, machines.get(node.id)?.ipmiIp ?? null).map((subject) => ({ subject, workflowId: id })),
  );
  const holderOf = await takeSubjects(tx, wanted);
  return new Map(
    wanted.flatMap(({ subject, workflowId }) => {
      const holder = holderOf.get(subject);
      return holder === undefined || holder === workflowId ? [] : [[workflowId, holder]];
    }),
  );
}

export const heldError = (node: Pick<Node, "id" | "hostname">, holder: WorkflowId, so: string): ApiError =>
  new ApiError(
    "operation_exists",
    `Decommission ${holder} holds node ${node.hostname}, so ${so}. Wait for it, or recover or cancel it.`,
    { context: { decommission_id: holder, node_id: node.id } },
  );
