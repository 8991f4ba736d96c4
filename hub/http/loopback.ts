import { BlockList, isIP } from "node:net";

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet("127.0.0.0", 8, "ipv4");
LOOPBACK.addAddress("::1", "ipv6");

/**
 * True if a server on the address `host` accepts connections only from its own machine. A name other than `localhost` may resolve to any address, so
 * `isLoopback` is false for every other name.
 */
export const isLoopback = (host: string): boolean =>
  host === "localhost" || (isIP(host) !== 0 && LOOPBACK.check(host, isIP(host) === 4 ? "ipv4" : "ipv6"));

/** True if a secret may be sent to the URL `text`: the URL begins with https://, or its server is on the hub's own machine. */
export function isSafeForSecrets(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && (url.protocol === "https:" || isLoopback(url.hostname.replace(/^\[|\]$/g, "")));
}
