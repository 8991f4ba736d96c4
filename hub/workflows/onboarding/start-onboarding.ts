import { randomUUID } from "node:crypto";
import { ApiError, type Problem } from "../../../shared/api/errors.ts";
import { NOWHERE } from "../../../shared/api/locations.ts";
import type {
  BatchCreate,
  BatchCreated,
  OnboardingCreate,
  OnboardingCreated,
} from "../../../shared/api/onboardings.ts";
import { BatchId, NodeId, type SiteId, WorkflowId } from "../../../shared/ids.ts";
import type { OnboardingMode } from "../../../shared/onboarding-mode.ts";
import { ONBOARDING_STAGES } from "../../../shared/workflow-status.ts";
import { insertBatch } from "../../db/queries/batches.ts";
import { readProfile } from "../../db/queries/maas-site-profiles.ts";
import { keepSite } from "../../db/queries/maas-sites.ts";
import { type BoundNode, nodesOfBmcs } from "../../db/queries/node-machines.ts";
import { listLivingNodes } from "../../db/queries/nodes.ts";
import { insertOnboardings } from "../../db/queries/onboardings.ts";
import { readSku } from "../../db/queries/skus.ts";
import { subjectOf, takeSubjects } from "../../db/queries/workflow-subjects.ts";
import { insertWorkflows } from "../../db/queries/workflows.ts";
import type { Tx } from "../../db/tx.ts";
import { ONBOARD } from "./onboard.ts";

type Selectors = Pick<OnboardingCreate, "site_id" | "profile_id" | "sku_id">;
type Host = Pick<OnboardingCreate, "hostname" | "ipmi_ip" | "pxe_mac" | "location">;
/** The JSON pointer of a host's fields in the request: empty for a single host, `/nodes/<n>` in a batch. */
type Placed = Host & { readonly pointer: string };

/** If `startOnboarding` refuses the request, it throws an ApiError and writes nothing. */
export async function startOnboarding(
  tx: Tx,
  { request, requestedBy }: { request: OnboardingCreate; requestedBy: string },
): Promise<OnboardingCreated> {
  const [created] = await start(tx, request, [{ ...request, pointer: "" }], { requestedBy, batchId: null });
  if (created === undefined) throw new ApiError("internal_error", "The onboarding was not written.");
  return { onboarding_id: created.id, node_id: created.nodeId, status: "pending" };
}

/** Accepts all hosts of a batch of onboardings or none. The error of a refused batch names each refused host in `errors`. */
export async function startOnboardingBatch(
  tx: Tx,
  { request, requestedBy }: { request: BatchCreate; requestedBy: string },
): Promise<BatchCreated> {
  const batchId = BatchId.parse(randomUUID());
  await insertBatch(tx, {
    id: batchId,
    kind: "onboarding",
    siteId: request.site_id,
    stopAfterFailures: request.stop_after_failures ?? null,
    requestedBy,
  });
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
  await insertWorkflows(
    tx,
    created.map(({ id, host }) => ({
      id,
      kind: ONBOARD,
      siteId,
      batchId: by.batchId,
      stage: ONBOARDING_STAGES[0],
      input: { hostname: host.hostname, ipmi_ip: host.ipmi_ip },
      requestedBy: by.requestedBy,
    })),
  );
  await holdSubjects(tx, siteId, created);
  await insertOnboardings(
    tx,
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
      ...(host.location ?? NOWHERE),
    })),
  );
  return created;
}

const at = (pointer: string, message: string): NonNullable<Problem["errors"]>[number] => ({ pointer, message });

async function checkSelectors(tx: Tx, { site_id, profile_id, sku_id }: Selectors): Promise<void> {
  // The lock on the site keeps the site's MAAS address unchanged, because only a site without workflows may move to another region.
  const site = await keepSite(tx, site_id);
  if (site === null) {
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
  const profile = await readProfile(tx, site_id, profile_id);
  if (profile === null) {
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
  const sku = await readSku(tx, sku_id);
  if (sku === null || sku.status !== "active") {
    const errors = [at("/sku_id", sku === null ? "names no SKU" : "names a disabled SKU")];
    throw new ApiError("sku_unknown", `SKU ${sku_id} is not known or disabled. Create or enable it first.`, { errors });
  }
}

type KnownNode = { id: NodeId; hostname: string; status: string; onboardingMode: OnboardingMode };

async function knownNodes(tx: Tx, siteId: SiteId, hosts: readonly Host[]): Promise<Map<string, KnownNode>> {
  const names = hosts.map((host) => host.hostname);
  const living = await listLivingNodes(tx, siteId, names);
  return new Map(living.map((row) => [row.hostname, row]));
}

/**
 * A new onboarding continues with a node that an earlier onboarding left `enrolling` (lifecycle 4.6), but never with an adopted node, whose host runs
 * (decision N8). The hub refuses a host that is a node in
 * service, and a host whose BMC belongs to a node of another name.
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
      ...(named === undefined || (named.status === "enrolling" && named.onboardingMode !== "adopted")
        ? []
        : [{ host, field: "hostname", node: named }]),
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

/** An onboarding holds its host's name and BMC until the onboarding is over, so that two onboardings never work on one host. */
async function holdSubjects(
  tx: Tx,
  siteId: SiteId,
  created: readonly { id: WorkflowId; host: Placed }[],
): Promise<void> {
  const wanted = created.flatMap(({ id, host }) => [
    { subject: subjectOf.host(siteId, host.hostname), workflowId: id, pointer: `${host.pointer}/hostname` },
    { subject: subjectOf.bmc(siteId, host.ipmi_ip), workflowId: id, pointer: `${host.pointer}/ipmi_ip` },
  ]);
  const holderOf = await takeSubjects(tx, wanted);
  wanted.sort((a, b) => (a.subject < b.subject ? -1 : 1));
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
