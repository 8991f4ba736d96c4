import { randomUUID } from "node:crypto";
import { ApiError } from "../../../shared/api/errors.ts";
import type { ExternalBegin } from "../../../shared/api/external-attempts.ts";
import { NodeId } from "../../../shared/ids.ts";
import { lockUntilCommit } from "../../db/advisory-locks.ts";
import { openAllocationsOf } from "../../db/queries/allocations.ts";
import { databaseNow } from "../../db/queries/clock.ts";
import { insertAttempt, newestAttempts } from "../../db/queries/external-attempts.ts";
import { readProfile } from "../../db/queries/maas-site-profiles.ts";
import { readSite } from "../../db/queries/maas-sites.ts";
import { findLivingNode, lockNode, nextGeneration, setHostFacts } from "../../db/queries/nodes.ts";
import { readSku } from "../../db/queries/skus.ts";
import { operationOfNode } from "../../db/queries/workflow-subjects.ts";
import type { ExternalAttemptRow, Node } from "../../db/schema/index.ts";
import type { Tx } from "../../db/tx.ts";
import { createNode } from "../create-node.ts";
import { enterReimage } from "../lifecycle.ts";
import { holdsNode, isLeased } from "./attempt-table.ts";
import { moveAndTell, tellAttempt } from "./move-attempt.ts";

export interface BeginRequest extends ExternalBegin {
  /** True for a host that was provisioned before the hub heard of it. */
  readonly adopted: boolean;
}

/** The statuses of a node whose host an external system may provision again. */
const MAY_BEGIN: ReadonlySet<Node["status"]> = new Set(["bootstrap_issued", "enrolling", "active", "offline"]);

/**
 * Begins an attempt of an external system to provision a host, and creates the host's node if the hub knows none. A new provisioning attempt gives
 * the node a new generation, so no report about an earlier provisioning of the host counts any more. `beginAttempt` throws ApiError with the reason,
 * and writes nothing, while another system holds the node.
 */
export async function beginAttempt(
  tx: Tx,
  request: BeginRequest,
  holder: string,
): Promise<{ readonly node: Node; readonly attempt: ExternalAttemptRow }> {
  await mustKnow(tx, request);
  await lockUntilCommit(tx, "manual_node_name", request.hostname);
  const found = await findLivingNode(tx, request.hostname, request.site_id);
  const id = found === null ? await newNode(tx, request) : await freeNode(tx, found.id, request);
  const runsAgent = request.agent === "muster";
  await setHostFacts(tx, id, { networkOwnedBy: request.network_owned_by, runsAgent });
  const generation = await nextGeneration(tx, id);
  const node = await lockNode(tx, id);
  if (node === null) throw new Error(`node ${id} is gone although it is locked`);
  const attempt = await insertAttempt(tx, {
    nodeId: id,
    siteId: node.siteId,
    generation,
    profileId: request.profile_id,
    provisioner: request.provisioner,
    holder,
    adopted: request.adopted,
    reason: `${request.provisioner} provisions the host`,
    leaseSeconds: request.lease_seconds,
    readyWithinSeconds: request.ready_within_seconds,
    deadlineSeconds: request.deadline_seconds,
  });
  await tellAttempt(tx, attempt, node, holder);
  return { node, attempt };
}

async function mustKnow(tx: Tx, { site_id, sku_id, profile_id }: BeginRequest): Promise<void> {
  const unknown = (field: string, what: string) =>
    new ApiError("reference_unknown", `There is no ${what}. List them and use one that exists.`, {
      errors: [{ pointer: `/${field}`, message: "names nothing that exists" }],
    });
  if (site_id !== null && (await readSite(tx, site_id)) === null) throw unknown("site_id", `site ${site_id}`);
  if ((await readSku(tx, sku_id)) === null) throw unknown("sku_id", `SKU ${sku_id}`);
  if (profile_id === null) return;
  if (site_id === null || (await readProfile(tx, site_id, profile_id)) === null)
    throw unknown("profile_id", `profile ${profile_id} of the site`);
}

async function newNode(tx: Tx, request: BeginRequest): Promise<NodeId> {
  const id = NodeId.parse(randomUUID());
  const sku = await readSku(tx, request.sku_id);
  await createNode(tx, {
    id,
    hostname: request.hostname,
    siteId: request.site_id,
    sku: request.sku_id,
    gpusTotal: sku?.gpusTotal ?? 0,
    regionCode: request.region_code,
    onboardingMode: "external",
    location: request.location,
    owner: "admin_api",
  });
  return id;
}

/** Locks the node, and takes it out of service if it is in service. Throws ApiError unless the host may be provisioned again. */
async function freeNode(tx: Tx, id: NodeId, request: BeginRequest): Promise<NodeId> {
  const { hostname, provisioner } = request;
  const node = await lockNode(tx, id);
  if (node === null) throw new Error(`node ${id} is gone although its name is locked`);
  const refuse = (why: string, more: Record<string, string> = {}) =>
    new ApiError("conflict", `Host ${hostname} cannot be provisioned by ${provisioner}: ${why}`, {
      context: { node_id: id, node_status: node.status, ...more },
    });
  if (node.onboardingMode !== "external")
    throw refuse(
      `its node is of ${node.onboardingMode} mode. Decommission the node first, if another system is to provision the host.`,
    );
  // The SKU decides which hardware a tenant gets, so a new provisioning of the host must not change the node's SKU as a side effect.
  for (const [field, said, has] of [
    ["sku_id", request.sku_id, node.sku],
    ["region_code", request.region_code, node.regionCode],
  ] as const)
    if (said !== has)
      throw refuse(
        `its node has the ${field} ${has}, and the request says ${said}. Send ${has}, or remove the node first.`,
      );
  // No external system sets or lifts a quarantine, and who set a quarantine decides who may lift it (decision N4).
  if (node.status === "quarantined")
    throw refuse(
      `the node is quarantined by ${node.quarantinedBy}, and no provisioning lifts a quarantine. When its cause is gone, a person lifts it with lift-node-quarantine.`,
    );
  if (!MAY_BEGIN.has(node.status)) throw refuse(`the node is ${node.status}.`);
  const holder = await operationOfNode(tx, id);
  if (holder !== null)
    throw refuse(`operation ${holder} holds the node. Wait for its end, or cancel it.`, { operation_id: holder });
  const allocation = (await openAllocationsOf(tx, [id])).get(id);
  if (allocation !== undefined)
    throw refuse(`it is allocated to ${allocation.tenant}. Release allocation ${allocation.id} first.`);
  const open = (await newestAttempts(tx, [id])).get(id);
  if (open !== undefined) await mustBeOver(tx, node, open, refuse);
  await enterReimage(tx, id, `${provisioner} provisions the host again`);
  return id;
}

/** A provisioning attempt whose lease has run out no longer holds its node, even if the hub has not yet recorded that the lease has run out. */
async function mustBeOver(
  tx: Tx,
  node: Node,
  open: ExternalAttemptRow,
  refuse: (why: string, more: Record<string, string>) => ApiError,
): Promise<void> {
  if (!holdsNode(open.state)) return;
  const now = await databaseNow(tx);
  if (isLeased(open.state) && open.leaseExpiresAt <= now) {
    const reason = `${open.provisioner} has not reported since ${open.heardAt.toISOString()}, and another attempt began`;
    const lost = { to: "lost", reason, failureCode: "lease_expired", isReport: false } as const;
    await moveAndTell(tx, open, node, lost, "hub");
    return;
  }
  const until = isLeased(open.state) ? open.leaseExpiresAt : open.deadlineAt;
  throw refuse(
    `attempt ${open.number} of ${open.provisioner} is ${open.state} and holds the node until ${until.toISOString()}. Wait for its end, or abandon it.`,
    { attempt_id: open.id },
  );
}
