/** One spelling an address: IPv6 as the URL parser writes it, anything else in lower case. */
export function sameAddress(a: string, b: string): boolean {
  const normal = (address: string): string => {
    const bare = address
      .trim()
      .toLowerCase()
      .replace(/^\[(.*)\]$/, "$1");
    return bare.includes(":") && URL.canParse(`http://[${bare}]`) ? new URL(`http://[${bare}]`).hostname : bare;
  };
  return normal(a) === normal(b);
}
