export const addressOf = (cidr: string): string => cidr.split("/")[0] ?? cidr;

/**
 * Returns the network of an address, for example 172.30.9.60/31 for 172.30.9.61/31. MAAS stores the CIDR of a subnet unchanged, so Muster must send
 * the network and not a host's address (maas 2.11).
 */
export function networkOf(cidr: string): string {
  const [address = "", length = "32"] = cidr.split("/");
  const bits = Number(length);
  const value = address.split(".").reduce((sum, octet) => sum * 256 + Number(octet), 0);
  const size = 2 ** (32 - bits);
  const network = Math.floor(value / size) * size;
  const octets = [24, 16, 8, 0].map((shift) => Math.floor(network / 2 ** shift) % 256);
  return `${octets.join(".")}/${bits}`;
}
