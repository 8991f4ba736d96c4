import { isIP } from "node:net";

/**
 * Returns the one spelling of a BMC's address that the hub compares. The hub's spelling of a BMC's address has lower case, no `http://` or
 * `https://`, and the URL parser's form of IPv6.
 */
export function normalAddress(address: string): string {
  const given = address.trim().toLowerCase();
  const host = /^https?:/.test(given) && URL.canParse(given) ? new URL(given).hostname : given;
  const bare = host.replace(/^\[(.*)\]$/, "$1");
  return bare.includes(":") && URL.canParse(`http://[${bare}]`) ? new URL(`http://[${bare}]`).hostname : bare;
}

/** True unless the two BMC addresses show that two machines differ. An empty BMC address is unknown, so it does not show that two machines differ. */
export const mayBeOneBmc = (a: string, b: string): boolean =>
  [a, b].map(normalAddress).includes("") || sameAddress(a, b);

export const sameAddress = (a: string, b: string): boolean => normalAddress(a) === normalAddress(b);

/** True if the text is an IP address; false for a host name and for an empty text. */
export const isAddress = (address: string): boolean => isIP(normalAddress(address).replace(/^\[(.*)\]$/, "$1")) !== 0;
