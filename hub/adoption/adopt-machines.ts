import { randomUUID } from "node:crypto";
import type { AdoptionDifferenceKind } from "../../shared/adoption.ts";
import { type AdoptionCreate, type AdoptionCreated, MOST_ADOPTED } from "../../shared/api/adoptions.ts";
import { ApiError } from "../../shared/api/errors.ts";
import { NodeId, type SiteId } from "../../shared/ids.ts";
import { isReadInFull } from "../../shared/machine-details.ts";
import { lockUntilCommit } from "../db/advisory-locks.ts";
import {
  type AdoptableMachine,
  type OtherBinding,
  type RoceAddress,
  readAdoptableMachines,
  readOtherBindings,
  readRoceOfHosts,
  secondsSincePoll,
} from "../db/queries/adoptable-machines.ts";
import { databaseNow } from "../db/queries/clock.ts";
import { recordDomainEvents } from "../db/queries/domain-events.ts";
import { readProfile } from "../db/queries/maas-site-profiles.ts";
import { keepSite } from "../db/queries/maas-sites.ts";
import { insertAdoptions } from "../db/queries/node-adoptions.ts";
import { recordNodeEvents } from "../db/queries/node-events.ts";
import { nodesWithLeftOverrides } from "../db/queries/node-health-overrides.ts";
import { readSku } from "../db/queries/skus.ts";
import type { MaasSite, MaasSiteProfile, Sku } from "../db/schema/index.ts";
import type { Db, Tx } from "../db/tx.ts";
import { hostAddresses } from "../maas/host-address.ts";
import { normalAddress } from "../maas/power-address.ts";
import { inheritHealthOverrides } from "../node/health-override.ts";
import { deployedSeries } from "../workflows/provisioning/distro-series.ts";
import { type AdoptionPolicy, type AdoptionVerdict, judgeMachine, type Surroundings } from "./rules.ts";

/** What MAAS alone knows of the machines that are to be adopted, by read requests only (decision N8). */
export interface MaasFacts {
  /** The MAAS user to whom the site's token belongs. */
  readonly username: string;
  /** The BMC address of each machine that MAAS lists; empty if MAAS has none. */
  readonly bmcs: ReadonlyMap<string, string>;
}

/** After `STALE_SECONDS` without a poll of the site, the hub does not know which machines are Deployed now. */
const STALE_SECONDS = 300;

/** Returns the system ids of the machines that a request selects; the caller asks MAAS about these machines before the transaction. */
export async function selectedSystemIds(db: Db, siteId: SiteId, request: AdoptionCreate): Promise<string[]> {
  const found = await readAdoptableMachines(db, siteId, selectionOf(request), MOST_ADOPTED + 1);
  return found.map(({ machine }) => machine.systemId);
}

const selectionOf = ({ system_ids: systemIds = [], hostnames = [], filter }: AdoptionCreate) => ({
  systemIds,
  hostnames,
  filter: filter ?? null,
});

/**
 * Makes running machines of a site nodes, all in the caller's transaction, so that a hub that dies adopts all machines of a request or none. A machine
 * that is a node already stays as it is. Adoptions of one site run one after the other, so that two requests never adopt one machine.
 */
export async function adoptMachines(
  tx: Tx,
  siteId: SiteId,
  request: AdoptionCreate,
  facts: MaasFacts,
  adoptedBy: string,
): Promise<AdoptionCreated> {
  const settings = await readSettings(tx, siteId, request);
  await lockUntilCommit(tx, "machine_adoption", siteId);
  const found = await readAdoptableMachines(tx, siteId, selectionOf(request), MOST_ADOPTED + 1);
  mustFitFilter(request, found.length);
  const policy = policyOf(settings, request, facts, await databaseNow(tx));
  const around = await readSurroundings(tx, siteId, found, facts);
  const judged = found.map(
    (one): Judged => ({ ...one, nodeId: null, verdict: judgeMachine(asMachine(one), around(one), policy) }),
  );
  const adopted = judged.map((one) =>
    one.verdict.outcome === "adopted" && !request.plan ? { ...one, nodeId: NodeId.parse(randomUUID()) } : one,
  );
  if (!request.plan) await write(tx, { ...settings, adoptedBy }, adopted.filter(isNew), facts);
  return answer(siteId, request, adopted);
}

type Judged = AdoptableMachine & { readonly nodeId: NodeId | null; readonly verdict: AdoptionVerdict };
type New = Judged & { readonly nodeId: NodeId };
const isNew = (one: Judged): one is New => one.nodeId !== null;

interface Settings {
  readonly site: MaasSite;
  readonly profile: MaasSiteProfile;
  readonly sku: Sku;
}

async function readSettings(tx: Tx, siteId: SiteId, request: AdoptionCreate): Promise<Settings> {
  // The lock on the site keeps the site's MAAS address unchanged, because only a site without nodes may move to another region without proof.
  const site = await keepSite(tx, siteId);
  if (site === null) throw new ApiError("not_found", `There is no site ${siteId}.`);
  if (site.status !== "active")
    throw new ApiError("site_disabled", `Site ${site.name} is disabled. Enable it before machines of it are adopted.`);
  const profileId = request.profile_id ?? site.defaultProfileId;
  const profile = profileId === null ? null : await readProfile(tx, siteId, profileId);
  if (profile === null)
    throw new ApiError("reference_unknown", `Site ${site.name} has no profile ${profileId}. Use one of its own.`, {
      errors: [{ pointer: "/profile_id", message: "names no profile of the site" }],
    });
  if (profile.status !== "active")
    throw new ApiError("profile_disabled", `Profile ${profile.name} is disabled. Enable it or use another.`);
  const sku = await readSku(tx, request.sku_id);
  if (sku === null || sku.status !== "active")
    throw new ApiError("sku_unknown", `SKU ${request.sku_id} is not known or disabled. Create or enable it first.`, {
      errors: [{ pointer: "/sku_id", message: sku === null ? "names no SKU" : "names a disabled SKU" }],
    });
  const seconds = await secondsSincePoll(tx, siteId);
  if (seconds === null || seconds > STALE_SECONDS)
    throw new ApiError(
      "unavailable",
      `The hub has not read the machines of site ${site.name} from MAAS ${seconds === null ? "yet" : `for ${Math.round(seconds)} s`}, so it does not know which of them are Deployed. Nothing was adopted. See get-reconciliation-status, and ask again.`,
    );
  return { site, profile, sku };
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

const policyOf = ({ profile }: Settings, request: AdoptionCreate, facts: MaasFacts, now: Date): AdoptionPolicy => ({
  requireHwSync: profile.requireHwSync,
  syncIntervalSeconds: profile.hardwareSyncIntervalSeconds,
  image: deployedSeries(profile.distroSeries),
  architecture: profile.architecture,
  appliesRoce: profile.enablePhase2Roce,
  maasUser: facts.username,
  accepted: new Set(request.accept_differences),
  now,
});

const asMachine = ({ machine, unreadable }: AdoptableMachine) => ({
  ...machine,
  details: !unreadable && isReadInFull(machine.details) ? machine.details : null,
});

/** Reads the bindings of other nodes and the RoCE rows, each by one statement for all machines. */
async function readSurroundings(
  tx: Tx,
  siteId: SiteId,
  found: readonly AdoptableMachine[],
  { bmcs }: MaasFacts,
): Promise<(one: AdoptableMachine) => Surroundings> {
  const [systemIds, hostnames] = [
    found.map(({ machine }) => machine.systemId),
    found.map(({ machine }) => machine.hostname),
  ];
  const addressOf = (systemId: string): string | null => {
    const address = bmcs.get(systemId);
    return address === undefined ? null : normalAddress(address);
  };
  const addresses = [...new Set(systemIds.flatMap((id) => addressOf(id) || []))];
  const others = await readOtherBindings(tx, siteId, { systemIds, bmcs: addresses });
  const roce = Map.groupBy(await readRoceOfHosts(tx, siteId, hostnames), ({ hostname }: RoceAddress) => hostname);
  const atBmc = Map.groupBy(found, ({ machine }) => addressOf(machine.systemId));
  return (one) => {
    const { systemId, hostname } = one.machine;
    const bmc = addressOf(systemId);
    const shares = (other: OtherBinding): boolean =>
      other.siteId === siteId && other.ipmiIp === bmc && other.systemId !== systemId;
    const twin = bmc ? atBmc.get(bmc)?.find(({ machine }) => machine.systemId !== systemId) : undefined;
    const sameMachine = (other: OtherBinding): boolean =>
      other.siteId !== siteId && other.systemId === systemId && [other.ipmiIp, ""].includes(bmc ?? "");
    return {
      boundTo: one.boundTo,
      namesake: one.namesake,
      heldBy: one.heldBy,
      hasTwin: one.hasTwin,
      elsewhere: others.find(sameMachine) ?? null,
      bmc,
      bmcSharedWith: (bmc ? others.find(shares)?.hostname : undefined) ?? twin?.machine.hostname ?? null,
      roce: roce.get(hostname) ?? [],
    };
  };
}

const AGENT_MISSING = {
  type: "adoption.identity",
  reason: "AgentMissing",
  message:
    "The host runs without Muster's agent. Order a command for the host (create-adoption-commands), and run the command there as root.",
} as const;

type Asked = Settings & { readonly adoptedBy: string };

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

function answer(siteId: SiteId, request: AdoptionCreate, judged: readonly Judged[]): AdoptionCreated {
  const known = new Set(judged.flatMap(({ machine }) => [`id ${machine.systemId}`, `name ${machine.hostname}`]));
  const unknown = [
    ...(request.system_ids ?? []).filter((id) => !known.has(`id ${id}`)).map((id) => unknownMachine(id, null)),
    ...(request.hostnames ?? []).filter((name) => !known.has(`name ${name}`)).map((name) => unknownMachine(null, name)),
  ];
  const machines = [...judged.map(toMachine), ...unknown];
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
const toMachine = ({ machine, nodeId, boundTo, verdict }: Judged): Line => ({
  system_id: machine.systemId,
  hostname: machine.hostname,
  outcome: verdict.outcome,
  node_id: boundTo?.id ?? nodeId,
  node_status: boundTo?.status ?? (nodeId === null ? null : "bootstrap_issued"),
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
    differences: [],
    refusals,
  };
}
