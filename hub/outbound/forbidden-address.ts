import type { lookup } from "node:dns";
import { BlockList, isIP, type LookupFunction } from "node:net";
import { hostOf, portOf } from "./addresses.ts";
import { ownPlaces } from "./own-places.ts";

/**
 * The addresses that no webhook receiver and no MAAS region may have, because services of a cloud, a switch or a kernel may answer there. For
 * example, clouds give out a machine's credentials at the forbidden address 169.254.169.254. The forbidden addresses of webhook receivers and MAAS
 * regions include IPv6 addresses that a gateway translates to a forbidden IPv4 address. Loopback addresses are not forbidden, because the hub and
 * MAAS may run on one machine.
 */
const FORBIDDEN = new BlockList();
for (const [network, prefix] of [
  ["0.0.0.0", 8],
  ["169.254.0.0", 16],
  ["224.0.0.0", 3],
  // The addresses at which Alibaba, Azure and Oracle serve a machine's metadata.
  ["100.100.100.200", 32],
  ["168.63.129.16", 32],
  ["192.0.0.192", 32],
] as const)
  FORBIDDEN.addSubnet(network, prefix, "ipv4");
for (const [network, prefix] of [
  ["::", 128],
  ["fe80::", 10],
  ["ff00::", 8],
  // The addresses at which AWS and Google serve a machine's metadata.
  ["fd00:ec2::", 32],
  ["fd20:ce::254", 128],
  // The prefixes of IPv6 addresses that a NAT64 or 6to4 gateway translates to IPv4 addresses.
  ["64:ff9b::", 96],
  ["64:ff9b:1::", 48],
  ["2002::", 16],
] as const)
  FORBIDDEN.addSubnet(network, prefix, "ipv6");

const FORBIDDEN_WORDS = "a link-local, metadata, multicast, unspecified or translated (NAT64, 6to4) address";

/**
 * True for a forbidden IP address, even for an IPv4 address in IPv6 notation. `isForbidden` is false for every host name; the function `refusing`
 * checks the addresses to which a host name resolves.
 */
const isForbidden = (address: string): boolean => {
  const family = isIP(address);
  return family !== 0 && FORBIDDEN.check(address, family === 4 ? "ipv4" : "ipv6");
};

/**
 * True if no probe may connect to `address`, which is the host's own address or one to which its name resolves. A host is never on the hub's machine,
 * so all addresses and names of this machine are forbidden at every port, as other services of the hub's operator may listen there. No probe may
 * connect to a text that is no plain IP address, such as an IPv6 address with a zone.
 */
export const isForbiddenToProbes = (address: string, host: string): boolean =>
  isIP(address) === 0 ||
  address.includes("%") ||
  isForbidden(address) ||
  ownPlaces.isHere(address) ||
  ownPlaces.isHere(host);

/** True if the URL's host is a forbidden address, or an address of the hub itself. */
export const isForbiddenHost = (url: URL): boolean => isForbidden(hostOf(url)) || ownPlaces.isOwnUrl(url);

/** Returns the reason why Muster must not store a URL, or null if Muster may store it. */
export const hostFault = (url: URL): string | null => {
  if (isForbidden(hostOf(url))) return `must not be ${FORBIDDEN_WORDS}`;
  return ownPlaces.isOwnUrl(url) ? "must not be an address at which this hub itself answers" : null;
};

export class ForbiddenAddressError extends Error {
  override readonly name = "ForbiddenAddressError";
  readonly code = "forbidden_address";
}

/** Checks the addresses of a host name at each connection, because the addresses may change to forbidden addresses or to the hub's own addresses. */
export const refusing =
  (resolve: typeof lookup, url: URL): LookupFunction =>
  (hostname, options, done) => {
    resolve(hostname, { ...options, all: true }, (error, addresses) => {
      const [first] = addresses ?? [];
      if (error !== null || first === undefined) return done(error ?? new ForbiddenAddressError(), "");
      if (addresses.some(({ address }) => isForbidden(address) || ownPlaces.isOwn(address, portOf(url))))
        return done(new ForbiddenAddressError(), "");
      if (options.all === true) return done(null, addresses);
      done(null, first.address, first.family);
    });
  };
