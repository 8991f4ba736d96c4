import { BlockList, isIP } from "node:net";

/** Where a cloud's or a switch's own services answer, e.g. 169.254.169.254 with a machine's credentials. No receiver of an operator is there. */
const LINK_LOCAL = new BlockList();
LINK_LOCAL.addSubnet("169.254.0.0", 16, "ipv4");
LINK_LOCAL.addSubnet("fe80::", 10, "ipv6");

/** Also of an IPv4 address that is written as one of IPv6. */
export const isLinkLocal = (address: string): boolean => {
  const family = isIP(address);
  return family !== 0 && LINK_LOCAL.check(address, family === 4 ? "ipv4" : "ipv6");
};

/** The host of a URL as the network knows it: without the brackets of an IPv6 address. */
export const hostOf = (url: URL): string => url.hostname.replace(/^\[|\]$/g, "");

/** Why no webhook may have this URL; null when it may. A name is looked at again at each connection, as what it stands for may change. */
export function addressFault(url: URL): string | null {
  if (isLinkLocal(hostOf(url))) return "must not be a link-local address";
  const port = url.port === "" ? null : Number(url.port);
  return port === null || port === 80 || port === 443 || port >= 1024
    ? null
    : "must have the port 80, 443 or one from 1024 on; others belong to services that do not speak HTTP";
}
