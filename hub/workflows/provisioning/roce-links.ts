import type { RoceLink } from "../../db/queries/roce-links.ts";
import type { MaasInterface } from "../../maas/port.ts";

/** A link that gives a machine's interface a fixed IP address in a subnet (mode STATIC of MAAS). */
export interface StaticLink extends RoceLink {
  readonly interfaceId: number;
  readonly linkId: number;
}

export interface LinkPlan {
  /** The RoCE links that Muster made and that no RoCE row (RDMA address of an interface) names any more; Muster removes them from MAAS. */
  readonly stale: readonly StaticLink[];
  /** Links that Muster did not make on interfaces that a RoCE row names, so that Muster reports and keeps the links. */
  readonly foreign: readonly StaticLink[];
}

export const sameLink = (a: RoceLink, b: RoceLink): boolean =>
  a.interface === b.interface && a.ipAddress === b.ipAddress;

/**
 * Decides which STATIC links of a machine Muster removes from MAAS, and which links belong to somebody else. The argument `wanted` lists the
 * interfaces and IP addresses of the host's RoCE rows. The argument `ours` lists the links that Muster recorded as its own when a RoCE row (RDMA
 * address of an interface) named them.
 */
export function planLinks(
  interfaces: readonly MaasInterface[],
  wanted: readonly RoceLink[],
  ours: readonly RoceLink[],
): LinkPlan {
  const links = interfaces.flatMap((nic) =>
    nic.links.flatMap(({ id: linkId, mode, ipAddress }): StaticLink[] =>
      mode === "static" && ipAddress !== null ? [{ interface: nic.name, ipAddress, interfaceId: nic.id, linkId }] : [],
    ),
  );
  const unnamed = links.filter((link) => !wanted.some((one) => sameLink(one, link)));
  const isOurs = (link: StaticLink): boolean => ours.some((one) => sameLink(one, link));
  return {
    stale: unnamed.filter(isOurs),
    foreign: unnamed.filter((link) => !isOurs(link) && wanted.some((one) => one.interface === link.interface)),
  };
}
