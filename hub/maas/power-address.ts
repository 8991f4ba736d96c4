import { isIP } from "node:net";

/** One spelling an address: without the scheme that a Redfish one may have in MAAS, IPv6 as the URL parser writes it, anything else in lower case. */
export function normalAddress(address: string): string {
  const given = address.trim().toLowerCase();
  const host = /^https?:/.test(given) && URL.canParse(given) ? new URL(given).hostname : given;
  const bare = host.replace(/^\[(.*)\]$/, "$1");
  return bare.includes(":") && URL.canParse(`http://[${bare}]`) ? new URL(`http://[${bare}]`).hostname : bare;
}

export const sameAddress = (a: string, b: string): boolean => normalAddress(a) === normalAddress(b);

/** False for a name, and for what is empty. */
export const isAddress = (address: string): boolean => isIP(normalAddress(address).replace(/^\[(.*)\]$/, "$1")) !== 0;
