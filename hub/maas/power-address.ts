/** One spelling an address: IPv6 as the URL parser writes it, anything else in lower case. */
export function normalAddress(address: string): string {
  const bare = address
    .trim()
    .toLowerCase()
    .replace(/^\[(.*)\]$/, "$1");
  return bare.includes(":") && URL.canParse(`http://[${bare}]`) ? new URL(`http://[${bare}]`).hostname : bare;
}

export const sameAddress = (a: string, b: string): boolean => normalAddress(a) === normalAddress(b);
