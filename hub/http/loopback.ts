import { BlockList, isIP } from "node:net";

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet("127.0.0.0", 8, "ipv4");
LOOPBACK.addAddress("::1", "ipv6");

/** Whether nobody but this machine reaches what listens there. A name may stand for anything, but for this one. */
export const isLoopback = (host: string): boolean =>
  host === "localhost" || (isIP(host) !== 0 && LOOPBACK.check(host, isIP(host) === 4 ? "ipv4" : "ipv6"));
