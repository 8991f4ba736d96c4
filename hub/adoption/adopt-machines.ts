import { randomUUID } from "node:crypto";
import type { AdoptionDifferenceKind } from "../../shared/adoption.ts";
import { type AdoptionCreate, type AdoptionCreated, MOST_ADOPTED } from "../../shared/api/adoptions.ts";
import { ApiError } from "../../shared/api/errors.ts";
import { NodeId, type SiteId } from "../../shared/ids.ts";
import { isReadInFull } from "../../shared/machine-details.ts";
import { type AdoptableMachine, readAdoptableMachines } from "../db/queries/adoptable-machines.ts";
import { recordDomainEvents } from "../db/queries/domain-events.ts";
import { insertAdoptions } from "../db/queries/node-adoptions.ts";
import { recordNodeEvents } from "../db/queries/node-events.ts";
import { nodesWithLeftOverrides } from "../db/queries/node-health-overrides.ts";
import { readSku } from "../db/queries/skus.ts";
import type { Sku } from "../db/schema/index.ts";
import type { Db, Tx } from "../db/tx.ts";
import { hostAddresses } from "../maas/host-address.ts";
import { normalAddress } from "../maas/power-address.ts";
import { inheritHealthOverrides } from "../node/health-override.ts";
import { type Judging, type MaasFacts, readJudging } from "./judge-machines.ts";
import { type AdoptionVerdict, judgeMachine } from "./rules.ts";

/** Returns the machines that a request selects; the caller asks MAAS about these machines before the transaction. */
export async function selectedMachines(
  db: Db | Tx,
  siteId: SiteId,
  request: AdoptionCreate,
): Promise<{ systemIds: string[]; hostnames: string[] }> {
  const found = await readAdoptableMachines(db, siteId, selectionOf(request), MOST_ADOPTED + 1);
  return {
    systemIds: found.map(({ machine }) => machine.systemId),
    hostnames: found.map(({ machine }) => machine.hostname),
  };
}

const selectionOf = ({ system_ids: systemIds = [], hostnames = [], filter }: AdoptionCreate) => ({
  systemIds,
  hostnames,
  filter: filter ?? null,
});

/**
 * Makes running machines of a site nodes, all in the caller's transaction, so that a hub that dies adopts all machines of a request or none. A machine
 * that is a node already stays as it is. Adoptions run one after the other, so that two requests never adopt one machine.
 */
export async function adoptMachines(
  tx: Tx,
  siteId: SiteId,
  request: AdoptionCreate,
  facts: MaasFacts,
  adoptedBy: string,
): Promise<AdoptionCreated> {
  const sku = await mustKnowSku(tx, request.sku_id);
  const { memory_gib: memoryGib } = sku.hardware;
  const asked = { ...request, memoryGib, select: selectionOf(request), most: MOST_ADOPTED + 1 };
  const { site, profile, policy, found } = await readJudging(tx, siteId, asked, facts);
  mustFitFilter(request, found.length);
  const judged = found.map(
    (one): Judged => ({ ...one, nodeId: null, verdict: judgeMachine(one.facts, one.around, policy) }),
  );
  const adopted = judged.map((one) =>
    one.verdict.outcome === "adopted" && !request.plan ? { ...one, nodeId: NodeId.parse(randomUUID()) } : one,
  );
  if (!request.plan) await write(tx, { site, profile, sku, adoptedBy }, adopted.filter(isNew), facts);
  return answer(siteId, request, sku, adopted);
}

type Judged = AdoptableMachine & { readonly nodeId: NodeId | null; readonly verdict: AdoptionVerdict };
type New = Judged & { readonly nodeId: NodeId };
const isNew = (one: Judged): one is New => one.nodeId !== null;

async function mustKnowSku(tx: Tx, id: string): Promise<Sku> {
  const sku = await readSku(tx, id);
  if (sku?.status === "active") return sku;
  throw new ApiError("sku_unknown", `SKU ${id} is not known or disabled. Create or enable it first.`, {
    errors: [{ pointer: "/sku_id", message: sku === null ? "names no SKU" : "names a disabled SKU" }],
  });
}

function mustFitFilter({ filter, expected_count: expected }: AdoptionCreate, matched: number): void {
  if (filter === undefined) return;
  const at = (pointer: string, message: string) => ({ errors: [{ pointer, message }] });
  if (matched > MOST_ADOPTED)
    throw new ApiError(
      "conflict",
      `The filter matches more than ${MOST_ADOPTED} machines. Nothing was adopted. Narrow the filter.`,
      at("/filter", `matches more than ${MOST_ADOPTED} machines`),
    );
  if (expected !== undefined && matched !== expected)
    throw new ApiError(
      "count_mismatch",
      `The filter matches ${matched} Deployed machines, but the request expects ${expected}. Nothing was adopted. Ask for the plan, and correct the filter or the number.`,
      at("/expected_count", `the filter matches ${matched} machines`),
    );
}

const AGENT_MISSING = {
  type: "adoption.identity",
  reason: "AgentMissing",
  message:
    "The host runs without Muster's agent. Order a command for the host (create-adoption-commands), and run the command there as root.",
} as const;

interface Asked extends Pick<Judging, "site" | "profile"> {
  readonly sku: Sku;
  readonly adoptedBy: string;
}

async function write(tx: Tx, asked: Asked, all: readonly New[], facts: MaasFacts): Promise<void> {
  const { site, profile, sku, adoptedBy } = asked;
  await insertAdoptions(
    tx,
    site.id,
    all.map(({ nodeId, machine, verdict }) => ({
      node: {
        id: nodeId,
        hostname: machine.hostname,
        siteId: site.id,
        sku: sku.id,
        gpusTotal: sku.gpusTotal,
        regionCode: site.regionCode,
        host: hostAddresses(machine.interfaceAddresses, site.deploySshIface)[0] ?? null,
      },
      adoption: {
        siteId: site.id,
        profileId: profile.id,
        adoptedBy,
        pastUnknown: true,
        wasManual: false,
        differences: verdict.differences,
      },
      machine: {
        systemId: machine.systemId,
        owner: machine.owner,
        ipmiIp: normalAddress(facts.bmcs.get(machine.systemId) ?? ""),
      },
    })),
    AGENT_MISSING,
  );
  await recordNodeEvents(
    tx,
    all.map(({ nodeId, machine }) => ({
      nodeId,
      type: "created" as const,
      toStatus: "bootstrap_issued" as const,
      owner: "admin_api",
      message: `Adopted from machine ${machine.systemId} of site ${site.name}, which runs; the host's agent is missing`,
    })),
  );
  await recordDomainEvents(
    tx,
    all.map(({ nodeId, machine, verdict }) => ({
      type: "node.adopted" as const,
      subject: `nodes/${nodeId}`,
      data: {
        node_id: nodeId,
        hostname: machine.hostname,
        site_id: site.id,
        maas_system_id: machine.systemId,
        by: adoptedBy,
        differences: [...new Set(verdict.differences.map(({ kind }) => kind))],
      },
    })),
  );
  const heirs = all.map(({ nodeId, machine }) => ({
    nodeId,
    siteId: site.id,
    maasSystemId: machine.systemId,
    macAddresses: isReadInFull(machine.details) ? machine.details.macs : [],
  }));
  const inherit = await nodesWithLeftOverrides(tx, heirs);
  for (const heir of heirs) if (inherit.has(heir.nodeId)) await inheritHealthOverrides(tx, heir);
}

function answer(siteId: SiteId, request: AdoptionCreate, sku: Sku, judged: readonly Judged[]): AdoptionCreated {
  const known = new Set(judged.flatMap(({ machine }) => [`id ${machine.systemId}`, `name ${machine.hostname}`]));
  const unknown = [
    ...(request.system_ids ?? []).filter((id) => !known.has(`id ${id}`)).map((id) => unknownMachine(id, null)),
    ...(request.hostnames ?? []).filter((name) => !known.has(`name ${name}`)).map((name) => unknownMachine(null, name)),
  ];
  const machines = [...judged.map((one) => toMachine(one, sku)), ...unknown];
  const count = (outcome: string): number => machines.filter((one) => one.outcome === outcome).length;
  const kinds = new Map<AdoptionDifferenceKind, number>();
  for (const { differences } of machines)
    for (const kind of new Set(differences.map((one) => one.kind))) kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
  return {
    site_id: siteId,
    plan: request.plan,
    matched: machines.length,
    adopted: count("adopted"),
    existing: count("exists"),
    refused: count("refused"),
    differences: [...kinds].map(([kind, number]) => ({ kind, machines: number })),
    machines,
  };
}

type Line = AdoptionCreated["machines"][number];

const GPUS_UNKNOWN =
  "Not compared with the SKU: MAAS names no GPUs. The hub compares them when the agent has reported (condition adoption.gpus).";

const toMachine = ({ machine, nodeId, boundTo, verdict }: Judged, { gpusTotal }: Sku): Line => ({
  system_id: machine.systemId,
  hostname: machine.hostname,
  outcome: verdict.outcome,
  node_id: boundTo?.id ?? nodeId,
  node_status: boundTo?.status ?? (nodeId === null ? null : "bootstrap_issued"),
  gpus: verdict.outcome === "exists" ? null : { expected: gpusTotal, found: "unknown", message: GPUS_UNKNOWN },
  differences: [...verdict.differences],
  refusals: [...verdict.refusals],
});

function unknownMachine(systemId: string | null, hostname: string | null): Line {
  const message = `Muster has seen no machine ${systemId ?? hostname} at the site. Correct the request, or run the reconciliation of the site and ask again.`;
  const refusals = [{ code: "machine_unknown" as const, message }];
  return {
    system_id: systemId,
    hostname,
    outcome: "refused",
    node_id: null,
    node_status: null,
    gpus: null,
    differences: [],
    refusals,
  };
}
