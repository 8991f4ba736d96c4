import { isIP } from "node:net";

/** Makes one spelling of an address: without the scheme of a Redfish address, IPv6 as the URL parser writes it, and all in lower case. */
export function normalAddress(address: string): string {
  const given = address.trim().toLowerCase();
  const host = /^https?:/.test(given) && URL.canParse(given) ? new URL(given).hostname : given;
  const bare = host.replace(/^\[(.*)\]$/, "$1");
  return bare.includes(":") && URL.canParse(`http://[${bare}]`) ? new URL(`http://[${bare}]`).hostname : bare;
}

export const sameAddress = (a: string, b: string): boolean => normalAddress(a) === normalAddress(b);

/** True for an IP address, false for a host name and for an empty text. */
export const isAddress = (address: string): boolean => isIP(normalAddress(address).replace(/^\[(.*)\]$/, "$1")) !== 0;
