import { randomUUID } from "node:crypto";
import { ApiError, type Problem } from "../../../shared/api/errors.ts";
import type {
  BatchCreate,
  BatchCreated,
  OnboardingCreate,
  OnboardingCreated,
} from "../../../shared/api/onboardings.ts";
import { BatchId, NodeId, type SiteId, WorkflowId } from "../../../shared/ids.ts";
import { ONBOARDING_STAGES } from "../../../shared/workflow-status.ts";
import { and, eq, inArray, ne, sql } from "../../db/orm.ts";
import { hostSubject } from "../../db/queries/host-holds.ts";
import { type BoundNode, nodesOfBmcs } from "../../db/queries/node-machines.ts";
import { WORKFLOW_CHANNEL } from "../../db/queries/workflow-wakes.ts";
import {
  maasSiteProfiles,
  maasSites,
  nodeOnboardings,
  nodes,
  onboardingBatches,
  skus,
  workflowSubjects,
  workflows,
} from "../../db/schema/index.ts";
import type { Tx } from "../../db/tx.ts";
import { ONBOARD } from "./onboard.ts";

type Selectors = Pick<OnboardingCreate, "site_id" | "profile_id" | "sku_id">;
type Host = Pick<OnboardingCreate, "hostname" | "ipmi_ip" | "pxe_mac">;
/** JSON pointer of a host's fields in the request: empty for a single one, `/nodes/<n>` in a batch. */
type Placed = Host & { readonly pointer: string };

/** Accepts one onboarding (lifecycle 4.1). Throws ApiError; nothing is written then. */
export async function startOnboarding(
  tx: Tx,
  { request, requestedBy }: { request: OnboardingCreate; requestedBy: string },
): Promise<OnboardingCreated> {
  const [created] = await start(tx, request, [{ ...request, pointer: "" }], { requestedBy, batchId: null });
  if (created === undefined) throw new ApiError("internal_error", "The onboarding was not written.");
  return { onboarding_id: created.id, node_id: created.nodeId, status: "pending" };
}

/** Accepts all hosts of a batch or none; every refused host is named in `errors`. */
export async function startOnboardingBatch(
  tx: Tx,
  { request, requestedBy }: { request: BatchCreate; requestedBy: string },
): Promise<BatchCreated> {
  const batchId = BatchId.parse(randomUUID());
  await tx.insert(onboardingBatches).values({ id: batchId, siteId: request.site_id, requestedBy });
  const hosts = request.nodes.map((host, index) => ({ ...host, pointer: `/nodes/${index}` }));
  const created = await start(tx, request, hosts, { requestedBy, batchId });
  return {
    batch_id: batchId,
    onboardings: created.map(({ hostname, id, nodeId }) => ({ hostname, onboarding_id: id, node_id: nodeId })),
  };
}

interface Created {
  readonly id: WorkflowId;
  readonly nodeId: NodeId;
  readonly hostname: string;
}

async function start(
  tx: Tx,
  selectors: Selectors,
  hosts: readonly Placed[],
  by: { requestedBy: string; batchId: BatchId | null },
): Promise<Created[]> {
  await checkSelectors(tx, selectors);
  const siteId = selectors.site_id;
  const known = await knownNodes(tx, siteId, hosts);
  refuseNodesInService(
    hosts,
    known,
    await nodesOfBmcs(
      tx,
      siteId,
      hosts.map((host) => host.ipmi_ip),
    ),
  );
  const created = hosts.map((host) => ({
    id: WorkflowId.parse(randomUUID()),
    nodeId: known.get(host.hostname)?.id ?? NodeId.parse(randomUUID()),
    hostname: host.hostname,
    host,
  }));
  await tx.insert(workflows).values(
    created.map(({ id, host }) => ({
      id,
      kind: ONBOARD,
      status: "pending" as const,
      siteId,
      batchId: by.batchId,
      stage: ONBOARDING_STAGES[0],
      wakeAt: sql`now()`,
      input: { hostname: host.hostname, ipmi_ip: host.ipmi_ip },
      requestedBy: by.requestedBy,
    })),
  );
  await holdSubjects(tx, siteId, created);
  await tx.insert(nodeOnboardings).values(
    created.map(({ id, nodeId, host }) => ({
      onboardingId: id,
      batchId: by.batchId,
      nodeId,
      siteId,
      profileId: selectors.profile_id,
      skuId: selectors.sku_id,
      hostname: host.hostname,
      ipmiIp: host.ipmi_ip,
      pxeMac: host.pxe_mac ?? null,
    })),
  );
  await tx.execute(sql`select pg_notify(${WORKFLOW_CHANNEL}, '')`);
  return created;
}

const at = (pointer: string, message: string): NonNullable<Problem["errors"]>[number] => ({ pointer, message });

async function checkSelectors(tx: Tx, { site_id, profile_id, sku_id }: Selectors): Promise<void> {
  // The lock keeps the site at its address until this is written: only a site without work may move to another region.
  const [site] = await tx.select().from(maasSites).where(eq(maasSites.id, site_id)).for("share");
  if (site === undefined) {
    const errors = [at("/site_id", "names no site")];
    throw new ApiError("reference_unknown", `There is no site ${site_id}. List the sites and use one of them.`, {
      errors,
    });
  }
  if (site.status !== "active") {
    const errors = [at("/site_id", "names a disabled site")];
    throw new ApiError("site_disabled", `Site ${site.name} is disabled. Enable it before onboarding to it.`, {
      errors,
    });
  }
  const [profile] = await tx
    .select()
    .from(maasSiteProfiles)
    .where(and(eq(maasSiteProfiles.id, profile_id), eq(maasSiteProfiles.siteId, site_id)));
  if (profile === undefined) {
    const errors = [at("/profile_id", "names no profile of the site")];
    throw new ApiError("reference_unknown", `Site ${site.name} has no profile ${profile_id}. Use one of its own.`, {
      errors,
    });
  }
  if (profile.status !== "active") {
    const errors = [at("/profile_id", "names a disabled profile")];
    throw new ApiError("profile_disabled", `Profile ${profile.name} is disabled. Enable it or use another.`, {
      errors,
    });
  }
  const [sku] = await tx.select().from(skus).where(eq(skus.id, sku_id));
  if (sku === undefined || sku.status !== "active") {
    const errors = [at("/sku_id", sku === undefined ? "names no SKU" : "names a disabled SKU")];
    throw new ApiError("sku_unknown", `SKU ${sku_id} is not known or disabled. Create or enable it first.`, { errors });
  }
}

type KnownNode = { id: NodeId; hostname: string; status: string };

async function knownNodes(tx: Tx, siteId: SiteId, hosts: readonly Host[]): Promise<Map<string, KnownNode>> {
  const names = hosts.map((host) => host.hostname);
  const rows = await tx
    .select({ id: nodes.id, hostname: nodes.hostname, status: nodes.status })
    .from(nodes)
    .where(and(eq(nodes.siteId, siteId), inArray(nodes.hostname, names), ne(nodes.status, "deleted")));
  return new Map(rows.map((row) => [row.hostname, row]));
}

/**
 * A node that an earlier onboarding left enrolling is taken up again (lifecycle 4.6); one in service is not touched, and neither is a machine
 * that is a node under another name.
 */
function refuseNodesInService(
  hosts: readonly Placed[],
  known: ReadonlyMap<string, KnownNode>,
  bound: readonly BoundNode[],
): void {
  const refused = hosts.flatMap((host) => {
    const named = known.get(host.hostname);
    const other = bound.find((node) => node.ipmiIp === host.ipmi_ip && node.hostname !== host.hostname);
    return [
      ...(named === undefined || named.status === "enrolling" ? [] : [{ host, field: "hostname", node: named }]),
      ...(other === undefined ? [] : [{ host, field: "ipmi_ip", node: other }]),
    ];
  });
  const [first] = refused;
  if (first === undefined) return;
  const count = new Set(refused.map(({ host }) => host)).size;
  const example = `${first.field === "hostname" ? first.host.hostname : `BMC ${first.host.ipmi_ip}`} is node ${first.node.hostname}, which is ${first.node.status}`;
  throw new ApiError(
    "conflict",
    `${count === 1 ? "The host is" : `${count} hosts are`} a node already: ${example}. Decommission a node before its host is onboarded again.`,
    {
      errors: refused.map(({ host, field, node }) =>
        at(`${host.pointer}/${field}`, `is node ${node.id}, which is ${node.status}`),
      ),
      context: { node_id: first.node.id },
    },
  );
}

/** Host name and BMC are held until the onboarding is over, so that two can never work on one host. */
async function holdSubjects(
  tx: Tx,
  siteId: SiteId,
  created: readonly { id: WorkflowId; host: Placed }[],
): Promise<void> {
  const wanted = created.flatMap(({ id, host }) => [
    { subject: hostSubject(siteId, host.hostname), workflowId: id, pointer: `${host.pointer}/hostname` },
    { subject: `bmc:${siteId}/${host.ipmi_ip}`, workflowId: id, pointer: `${host.pointer}/ipmi_ip` },
  ]);
  // In one order for everybody, or two batches could wait for each other.
  wanted.sort((a, b) => (a.subject < b.subject ? -1 : 1));
  await tx
    .insert(workflowSubjects)
    .values(wanted.map(({ subject, workflowId }) => ({ subject, workflowId })))
    .onConflictDoNothing();
  const holders = await tx
    .select()
    .from(workflowSubjects)
    .where(
      inArray(
        workflowSubjects.subject,
        wanted.map((row) => row.subject),
      ),
    );
  const holderOf = new Map(holders.map((row) => [row.subject, row.workflowId]));
  const refused = wanted.filter((row) => holderOf.get(row.subject) !== row.workflowId);
  const [first] = refused;
  if (first === undefined) return;
  const holder = holderOf.get(first.subject);
  throw new ApiError(
    "onboarding_exists",
    `Onboarding ${holder} holds ${first.subject.split("/")[0]?.startsWith("bmc") ? "this BMC" : "this host"} already. Wait for it, or recover or cancel it.`,
    {
      errors: refused.map((row) => at(row.pointer, `is held by onboarding ${holderOf.get(row.subject)}`)),
      ...(holder === undefined ? {} : { context: { onboarding_id: holder } }),
    },
  );
}
