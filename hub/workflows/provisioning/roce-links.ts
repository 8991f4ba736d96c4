import type { RoceLink } from "../../db/queries/roce-links.ts";
import type { MaasInterface } from "../../maas/port.ts";

/** A link of a machine's interface to a subnet in MAAS, with a fixed IP address (mode STATIC). */
export interface StaticLink extends RoceLink {
  readonly interfaceId: number;
  readonly linkId: number;
}

export interface LinkPlan {
  /** Links of interfaces to subnets in MAAS that Muster made, and that no RoCE row names any more. Muster removes the links in `stale` from MAAS. */
  readonly stale: readonly StaticLink[];
  /**
   * Links of interfaces to subnets in MAAS that Muster did not make. A RoCE row names the interface of each link in `foreign`, but no RoCE row names
   * the link. Muster reports the links in `foreign` and does not change them.
   */
  readonly foreign: readonly StaticLink[];
}

export const sameLink = (a: RoceLink, b: RoceLink): boolean =>
  a.interface === b.interface && a.ipAddress === b.ipAddress;

/**
 * Decides which STATIC links of a machine's interfaces Muster removes from MAAS, and which links belong to somebody else. `wanted` lists the
 * interfaces and IP addresses of the host's RoCE rows. `ours` are links that Muster recorded when a RoCE row named them.
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
