import { BlockList, isIP } from "node:net";
import type { Subnet } from "../state/model.ts";

export interface Cidr {
  address: string;
  prefix: number;
}

export function parseCidr(text: string): Cidr | null {
  const [address, prefixText, ...rest] = text.split("/");
  const family = isIP(address ?? "");
  const prefix = Number(prefixText);
  if (
    address === undefined ||
    family === 0 ||
    rest.length > 0 ||
    prefixText === undefined ||
    !/^\d+$/.test(prefixText) ||
    prefix > (family === 4 ? 32 : 128)
  )
    return null;
  return { address, prefix };
}

function familyOf(address: string): "ipv4" | "ipv6" {
  return isIP(address) === 6 ? "ipv6" : "ipv4";
}

export function contains(cidr: string, address: string): boolean {
  const network = parseCidr(cidr);
  if (network === null || isIP(address) === 0) return false;
  const list = new BlockList();
  list.addSubnet(network.address, network.prefix, familyOf(network.address));
  return list.check(address, familyOf(address));
}

/** True if two IP networks overlap. Two IP networks overlap if and only if the larger network contains the first address of the smaller network. */
export function overlaps(a: string, b: string): boolean {
  const [left, right] = [parseCidr(a), parseCidr(b)];
  if (left === null || right === null || familyOf(left.address) !== familyOf(right.address)) return false;
  if (familyOf(left.address) === "ipv6") return contains(a, right.address) || contains(b, left.address);
  // The simulated region compares each new subnet with thousands of subnets, so `overlaps` compares IPv4 networks by fast arithmetic.
  const size = 2 ** (32 - Math.min(left.prefix, right.prefix));
  return Math.floor(numberOf(left.address) / size) === Math.floor(numberOf(right.address) / size);
}

export function inRange(address: string, start: string, end: string): boolean {
  if (familyOf(address) !== familyOf(start)) return false;
  const list = new BlockList();
  list.addRange(start, end, familyOf(start));
  return list.check(address, familyOf(address));
}

export function numberOf(address: string): number {
  return address.split(".").reduce((sum, part) => sum * 256 + Number(part), 0);
}

export function addressOf(number: number): string {
  return [24, 16, 8, 0].map((shift) => Math.floor(number / 2 ** shift) % 256).join(".");
}

/** Returns, as numbers, the first and last address that a host of an IPv4 subnet may have, and null for an IPv6 subnet. */
export function hostBounds(subnet: Subnet): { first: number; last: number } | null {
  const cidr = parseCidr(subnet.cidr);
  if (cidr === null || isIP(cidr.address) !== 4) return null;
  const size = 2 ** (32 - cidr.prefix);
  const base = Math.floor(numberOf(cidr.address) / size) * size;
  return cidr.prefix >= 31 ? { first: base, last: base + size - 1 } : { first: base + 1, last: base + size - 2 };
}
