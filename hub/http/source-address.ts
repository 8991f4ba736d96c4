import { BlockList, isIP } from "node:net";
import { plainAddress } from "../outbound/addresses.ts";

/** A set of addresses and networks, such as `10.0.0.7` and `10.1.0.0/16`; null if a part of the text is neither. */
export function addressSet(text: string): BlockList | null {
  const set = new BlockList();
  for (const part of text.split(",").map((one) => one.trim())) {
    const [address = "", bits, more] = part.split("/");
    const family = isIP(address);
    const most = family === 4 ? 32 : 128;
    const length = bits === undefined ? most : /^\d{1,3}$/.test(bits) ? Number(bits) : Number.NaN;
    if (family === 0 || more !== undefined || !(length <= most)) return null;
    set.addSubnet(address, length, family === 4 ? "ipv4" : "ipv6");
  }
  return set;
}

const contains = (set: BlockList, address: string): boolean =>
  set.check(address, isIP(address) === 6 ? "ipv6" : "ipv4");

/** The largest number of addresses that the hub reads in the header X-Forwarded-For, so that a long header costs the hub little. */
const MOST_HOPS = 32;

/**
 * Returns the address from which a request came. Every client can write the header X-Forwarded-For, so the hub believes only the part that its own
 * proxies wrote: from the right, up to the first address that is no configured proxy.
 */
export function sourceAddress(
  socketAddress: string | undefined,
  forwardedFor: string | undefined,
  proxies: BlockList | null,
): string | null {
  let source = plainAddress(socketAddress);
  if (proxies === null || forwardedFor === undefined) return source;
  for (const hop of forwardedFor.split(",").slice(-MOST_HOPS).reverse()) {
    if (source === null || !contains(proxies, source)) return source;
    const before = plainAddress(hop.trim());
    if (isIP(before) === 0) return source;
    source = before;
  }
  return source;
}
