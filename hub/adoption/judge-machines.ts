import type { AdoptionDifferenceKind } from "../../shared/adoption.ts";
import { ApiError } from "../../shared/api/errors.ts";
import type { ProfileId, SiteId } from "../../shared/ids.ts";
import { isReadInFull } from "../../shared/machine-details.ts";
import { lockUntilCommit } from "../db/advisory-locks.ts";
import {
  type AdoptableMachine,
  type MachineSelection,
  type OtherBinding,
  type RoceAddress,
  readAdoptableMachines,
  readOtherBindings,
  readRoceOfHosts,
  secondsSincePoll,
} from "../db/queries/adoptable-machines.ts";
import { databaseNow } from "../db/queries/clock.ts";
import { readProfile } from "../db/queries/maas-site-profiles.ts";
import { keepSite } from "../db/queries/maas-sites.ts";
import type { MaasSite, MaasSiteProfile } from "../db/schema/index.ts";
import type { Tx } from "../db/tx.ts";
import { mayBeOneBmc, normalAddress } from "../maas/power-address.ts";
import { deployedSeries } from "../workflows/provisioning/distro-series.ts";
import type { AdoptionPolicy, MachineToAdopt, Surroundings } from "./rules.ts";

/** What MAAS alone knows of the machines that are to be adopted, by read requests only (decision N8). */
export interface MaasFacts {
  /** The MAAS user to whom the site's token belongs. */
  readonly username: string;
  /** The BMC address of each machine that MAAS lists; empty if MAAS has none. */
  readonly bmcs: ReadonlyMap<string, string>;
}

/** After `STALE_SECONDS` without a poll of the site, the hub does not know which machines are Deployed now. */
const STALE_SECONDS = 300;

interface Asked {
  /**  The memory that the SKU of a new node requires; absent if the node has an agent already, whose inventory is compared with the SKU. */
  readonly memoryGib?: number | undefined;
  readonly profile_id?: ProfileId | undefined;
  readonly accept_differences: readonly AdoptionDifferenceKind[];
}

interface Found extends AdoptableMachine {
  readonly facts: MachineToAdopt;
  readonly around: Surroundings;
}

/** The site, profile and policy by which the hub judges the machines of a request, and the machines that the request selects. */
export interface Judging {
  readonly site: MaasSite;
  readonly profile: MaasSiteProfile;
  readonly policy: AdoptionPolicy;
  readonly found: readonly Found[];
}

/**
 * Reads everything that decides whether machines of a site may become machines of nodes, with a fixed number of SQL statements. Requests that bind
 * machines run one after the other, also those of two sites, because two sites may be one MAAS region by mistake. So two requests never bind one
 * machine.
 */
export async function readJudging(
  tx: Tx,
  siteId: SiteId,
  request: Asked & { readonly select: MachineSelection; readonly most: number },
  facts: MaasFacts,
): Promise<Judging> {
  const { site, profile } = await readSettings(tx, siteId, request);
  // A hub of an older version takes only the site's lock for adoptions, so the hub takes this lock besides the lock for all sites.
  for (const subject of ["", siteId]) await lockUntilCommit(tx, "machine_adoption", subject);
  const machines = await readAdoptableMachines(tx, siteId, request.select, request.most);
  const policy = policyOf(profile, request, facts, await databaseNow(tx));
  const around = await readSurroundings(tx, siteId, machines, facts);
  const found = machines.map((one): Found => ({ ...one, facts: asMachine(one), around: around(one) }));
  return { site, profile, policy, found };
}

async function readSettings(tx: Tx, siteId: SiteId, request: Asked): Promise<Pick<Judging, "site" | "profile">> {
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
  const seconds = await secondsSincePoll(tx, siteId);
  if (seconds === null || seconds > STALE_SECONDS)
    throw new ApiError(
      "unavailable",
      `The hub has not read the machines of site ${site.name} from MAAS ${seconds === null ? "yet" : `for ${Math.round(seconds)} s`}, so it does not know which of them are Deployed. Nothing was adopted. See get-reconciliation-status, and ask again.`,
    );
  return { site, profile };
}

const policyOf = (profile: MaasSiteProfile, request: Asked, facts: MaasFacts, now: Date): AdoptionPolicy => ({
  requireHwSync: profile.requireHwSync,
  syncIntervalSeconds: profile.hardwareSyncIntervalSeconds,
  image: deployedSeries(profile.distroSeries),
  architecture: profile.architecture,
  appliesRoce: profile.enablePhase2Roce,
  memoryGib: request.memoryGib,
  maasUser: facts.username,
  accepted: new Set(request.accept_differences),
  now,
});

const asMachine = ({ machine, unreadable }: AdoptableMachine): MachineToAdopt => ({
  ...machine,
  details: !unreadable && isReadInFull(machine.details) ? machine.details : null,
});

/** Reads the nodes that are bound to the machines or their BMCs, and the RoCE addresses of the hosts, with one SQL query each for all machines. */
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
      other.siteId !== siteId && other.systemId === systemId && mayBeOneBmc(other.ipmiIp, bmc ?? "");
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
