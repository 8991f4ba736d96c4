import type { RoceLink } from "../../db/queries/roce-links.ts";
import type { MaasInterface } from "../../maas/port.ts";

/** A STATIC link of a machine as MAAS has it. */
export interface StaticLink extends RoceLink {
  readonly interfaceId: number;
  readonly linkId: number;
}

export interface LinkPlan {
  /** Of our making, and no row names them any more. */
  readonly stale: readonly StaticLink[];
  /** On an interface that rows name, and neither a row's nor of our making: they are told, and stay. */
  readonly foreign: readonly StaticLink[];
}

export const sameLink = (a: RoceLink, b: RoceLink): boolean =>
  a.interface === b.interface && a.ipAddress === b.ipAddress;

/** What of a machine's STATIC links goes, and what is somebody else's. `wanted`: what the host's rows name; `ours`: what a row has named before. */
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
