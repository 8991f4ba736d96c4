import { BlockList, isIP } from "node:net";

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet("127.0.0.0", 8, "ipv4");
LOOPBACK.addAddress("::1", "ipv6");

/**
 * True if `host`, the address on which a server listens, is a loopback address, so that only local processes can connect to the server. A name other
 * than `localhost` may resolve to any address, so it counts as reachable from outside.
 */
export const isLoopback = (host: string): boolean =>
  host === "localhost" || (isIP(host) !== 0 && LOOPBACK.check(host, isIP(host) === 4 ? "ipv4" : "ipv6"));
