import { listRoceOfHost } from "../../../db/queries/roce-assignments.ts";
import { forgetRoceLinks, listRoceLinks, noteRoceLinks, type RoceLink } from "../../../db/queries/roce-links.ts";
import type { MaasRoceAssignment } from "../../../db/schema/index.ts";
import { MaasError, type MaasInterface, type MaasPort, type MaasSubnet } from "../../../maas/port.ts";
import { inFencedTx, UPSTREAM_RETRY } from "../../services.ts";
import { maasOf, type ProvisionContext, type ProvisionStage, profileTimeout, systemIdOf } from "../context.ts";
import { notEditable } from "../editable.ts";
import { addressOf, networkOf } from "../ipv4.ts";
import { type LinkPlan, planLinks, sameLink } from "../roce-links.ts";

/**
 * Muster does not set up routing for the RoCE network on the host (lifecycle 4.3). If Muster cannot apply a RoCE row, which gives an interface an
 * RDMA address, MAAS deploys the host without the address (lifecycle 4.6). The node's condition `network.roce` names the RoCE rows (RDMA addresses of
 * interfaces) that Muster could not apply. Muster removes the links of earlier RoCE rows, because MAAS would otherwise configure the old addresses
 * too.
 */
export const applyRocePhase2: ProvisionStage<"apply_roce_phase2"> = {
  name: "apply_roce_phase2",
  title: "Give the RoCE interfaces their static addresses",
  reentry: { rule: "from_top" },
  timeout: profileTimeout(
    "configureTimeoutSeconds",
    "upstream_transient",
    "maas_timeout",
    "Applying the RoCE addresses",
  ),
  retry: UPSTREAM_RETRY,
  async run(context) {
    const { services, site, host, profile } = context;
    const rows = profile.enablePhase2Roce ? await listRoceOfHost(services.db, site.id, host.hostname) : [];
    const place = { siteId: site.id, systemId: systemIdOf(context) };
    const ours = await listRoceLinks(services.db, place);
    if (rows.length === 0 && ours.length === 0) {
      const message = profile.enablePhase2Roce
        ? "The host has no RoCE assignments"
        : "The profile does not enable RoCE";
      return { kind: "skipped", message, patch: NO_ROCE };
    }
    const other = await notEditable("apply_roce_phase2", context);
    if (other !== null) return other;
    const wanted = rows.map(linkOf);
    await inFencedTx(context, (tx) => noteRoceLinks(tx, place, wanted));
    const { stale, foreign, interfaces } = await takeAwayStale(context, wanted, ours);
    const refused = await applyAll(context, rows, interfaces);
    const warnings = refused.map(({ row, warning }) => `${row.interface} ${row.ipv4Cidr}: ${warning}`);
    const isRefused = (link: RoceLink): boolean => refused.some(({ row }) => sameLink(linkOf(row), link));
    const applied = rows.length - warnings.length;
    const removed = stale.map(inWords);
    const left = foreign.map(inWords);
    return {
      kind: "done",
      message: `${applied} of ${rows.length} RoCE addresses are set${removed.length === 0 ? "" : `, ${removed.length} old ones removed`}`,
      patch: {
        roce_assigned: rows.length,
        roce_applied: applied,
        roce_warnings: warnings,
        roce_foreign: left.slice(0, 32),
      },
      details: {
        applied,
        assignments: rows.length,
        warnings: warnings.slice(0, 32),
        removed_links: removed.slice(0, 32),
        foreign_links: left.slice(0, 32),
      },
      commit: (tx) =>
        forgetRoceLinks(
          tx,
          place,
          // MAAS has no link for a RoCE row (RDMA address of an interface) that it refused, so the hub does not expect the host to have the address.
          [...ours, ...wanted].filter((link) => !wanted.some((one) => sameLink(one, link)) || isRefused(link)),
        ),
    };
  },
};

const linkOf = (row: MaasRoceAssignment): RoceLink => ({
  interface: row.interface,
  ipAddress: addressOf(row.ipv4Cidr),
});
const NO_ROCE = { roce_assigned: 0, roce_applied: 0, roce_warnings: [], roce_foreign: [] };
const inWords = (link: RoceLink): string => `${link.interface} ${link.ipAddress}`;

/**
 * Removes from MAAS the machine's RoCE links that Muster made and no RoCE row names any more. Muster removes old RoCE links before it adds a link,
 * because another RoCE row may need the address of an old link.
 */
async function takeAwayStale(
  context: ProvisionContext,
  wanted: readonly RoceLink[],
  ours: readonly RoceLink[],
): Promise<LinkPlan & { readonly interfaces: readonly MaasInterface[] }> {
  const maas = await maasOf(context);
  const systemId = systemIdOf(context);
  const interfaces = await maas.interfaces(systemId);
  const plan = planLinks(interfaces, wanted, ours);
  for (const link of plan.stale) await maas.unlinkSubnet(systemId, link.interfaceId, link.linkId);
  return { ...plan, interfaces: plan.stale.length === 0 ? interfaces : await maas.interfaces(systemId) };
}

/** A RoCE row (RDMA address of an interface) for which MAAS refused the link, with the refusal as a warning. */
interface Refused {
  readonly row: MaasRoceAssignment;
  readonly warning: string;
}

async function applyAll(
  context: ProvisionContext,
  rows: readonly MaasRoceAssignment[],
  interfaces: readonly MaasInterface[],
): Promise<Refused[]> {
  const maas = await maasOf(context);
  const systemId = systemIdOf(context);
  const subnets = new Map((await maas.subnets()).map((subnet) => [subnet.cidr, subnet]));
  const refused: Refused[] = [];
  for (const row of rows) {
    const nic = interfaces.find((one) => one.name === row.interface);
    const warning =
      nic === undefined ? "the machine has no such interface" : await apply(maas, systemId, nic, row, subnets);
    if (warning !== null) refused.push({ row, warning });
  }
  return refused;
}

async function apply(
  maas: MaasPort,
  systemId: string,
  nic: MaasInterface,
  row: MaasRoceAssignment,
  subnets: Map<string, MaasSubnet>,
): Promise<string | null> {
  const ipAddress = addressOf(row.ipv4Cidr);
  const cidr = networkOf(row.ipv4Cidr);
  // Muster reads the links of an interface first, because a second request for one STATIC link is an error in MAAS (maas 2.11).
  if (hasAddress(nic, ipAddress)) return null;
  try {
    const subnet = subnets.get(cidr) ?? (await createSubnet(maas, nic, cidr));
    if (subnet === null) return "the interface has no VLAN in MAAS";
    subnets.set(cidr, subnet);
    if (nic.vlanId !== subnet.vlanId) await maas.setInterfaceVlan(systemId, nic.id, subnet.vlanId);
    await maas.linkSubnet(systemId, nic.id, { mode: "static", subnetId: subnet.id, ipAddress });
    return null;
  } catch (error) {
    if (!(error instanceof MaasError) || isUpstreamFault(error)) throw error;
    // If MAAS answers that an address is in use, an earlier run may have linked the interface to the address (maas 2.11).
    if (await isLinked(maas, systemId, nic.id, ipAddress)) return null;
    return error.message.slice(0, 200);
  }
}

const hasAddress = (nic: MaasInterface, ipAddress: string): boolean =>
  nic.links.some((link) => link.mode === "static" && link.ipAddress === ipAddress);

async function isLinked(maas: MaasPort, systemId: string, nicId: number, ipAddress: string): Promise<boolean> {
  const nic = (await maas.interfaces(systemId)).find((one) => one.id === nicId);
  return nic !== undefined && hasAddress(nic, ipAddress);
}

/** Muster creates an unmanaged subnet, because in a managed subnet MAAS might assign RoCE addresses to other machines (maas 2.11). */
async function createSubnet(maas: MaasPort, nic: MaasInterface, cidr: string): Promise<MaasSubnet | null> {
  if (nic.vlanId === null) return null;
  return maas.createSubnet({ cidr, name: cidr, vlanId: nic.vlanId, managed: false });
}

/**
 * True for MAAS errors that make the whole stage fail, for example because MAAS is unavailable or Muster's MAAS user lacks rights. An error about a
 * single RoCE row, the RDMA address of one interface, is only a warning.
 */
const isUpstreamFault = (error: MaasError): boolean =>
  !["rejected_input", "not_found", "state_conflict"].includes(error.code);
