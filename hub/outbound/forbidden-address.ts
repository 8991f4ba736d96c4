import type { lookup } from "node:dns";
import { BlockList, isIP, type LookupFunction } from "node:net";
import { ownPlaces, portOf } from "./own-places.ts";

/**
 * Where no receiver and no region of an operator is, but a cloud's, a switch's or a kernel's own services may answer, e.g. 169.254.169.254 with a
 * machine's credentials; and forms of IPv6 that a gateway turns into such an IPv4 address. Loopback is not among them: hub and MAAS may be on one machine.
 */
const FORBIDDEN = new BlockList();
for (const [network, prefix] of [
  ["0.0.0.0", 8],
  ["169.254.0.0", 16],
  ["224.0.0.0", 3],
  // Metadata of Alibaba, Azure and Oracle.
  ["100.100.100.200", 32],
  ["168.63.129.16", 32],
  ["192.0.0.192", 32],
] as const)
  FORBIDDEN.addSubnet(network, prefix, "ipv4");
for (const [network, prefix] of [
  ["::", 128],
  ["fe80::", 10],
  ["ff00::", 8],
  // Metadata of AWS and Google.
  ["fd00:ec2::", 32],
  ["fd20:ce::254", 128],
  // NAT64 and 6to4.
  ["64:ff9b::", 96],
  ["64:ff9b:1::", 48],
  ["2002::", 16],
] as const)
  FORBIDDEN.addSubnet(network, prefix, "ipv6");

const FORBIDDEN_WORDS = "a link-local, metadata, multicast, unspecified or translated (NAT64, 6to4) address";

/** Also of an IPv4 address that is written as one of IPv6. A name is none, whatever it stands for: `refusing` looks at that. */
const isForbidden = (address: string): boolean => {
  const family = isIP(address);
  return family !== 0 && FORBIDDEN.check(address, family === 4 ? "ipv4" : "ipv6");
};

/** Of a URL's host as it is written: an address that is forbidden, or one of the hub's own. */
export const isForbiddenHost = (url: URL): boolean => isForbidden(hostOf(url)) || ownPlaces.isOwnUrl(url);

/** What is wrong with a URL that is to be kept; null when nothing is. */
export const hostFault = (url: URL): string | null => {
  if (isForbidden(hostOf(url))) return `must not be ${FORBIDDEN_WORDS}`;
  return ownPlaces.isOwnUrl(url) ? "must not be an address at which this hub itself answers" : null;
};

/** The host of a URL as the network knows it: without the brackets of an IPv6 address. */
export const hostOf = (url: URL): string => url.hostname.replace(/^\[|\]$/g, "");

export class ForbiddenAddressError extends Error {
  override readonly name = "ForbiddenAddressError";
  readonly code = "forbidden_address";
}

/** Refuses at each connection: a name that stood for a receiver yesterday may stand for a link-local address, or for the hub itself, today. */
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
