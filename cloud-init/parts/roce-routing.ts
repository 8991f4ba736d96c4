import type { UserDataInput } from "../input.ts";
import { partFile, shellPart } from "./part.ts";

/**
 * The number of the first routing table, and of the first rule priority, that Muster uses. The RoCE script on the host clears Muster's range of
 * routing tables and rules before it adds rules.
 */
const FIRST_TABLE = 4200;

const toNumber = (address: string): number =>
  address.split(".").reduce((sum, octet) => sum * 256 + Number.parseInt(octet, 10), 0);
const toAddress = (value: number): string => [24, 16, 8, 0].map((shift) => (value >>> shift) & 255).join(".");

/**
 * The gateway of a point-to-point link is the link's other end: the other address of a /31, or the other host of a /30. For a subnet wider than /30
 * the router is unknown, so the RDMA network interface gets only a route to its own network.
 */
export const roceLink = (cidr: string): { address: string; network: string; peer: string | null } => {
  const [address = "", length = "32"] = cidr.split("/");
  const prefix = Number.parseInt(length, 10);
  const value = toNumber(address);
  const size = 2 ** (32 - prefix);
  const base = value - (value % size);
  const host = value - base;
  const peer =
    prefix === 31 ? base + (1 - host) : prefix === 30 && (host === 1 || host === 2) ? base + (3 - host) : null;
  return { address, network: `${toAddress(base)}/${prefix}`, peer: peer === null ? null : toAddress(peer) };
};

const tableLines = (input: UserDataInput): string =>
  input.roce.assignments
    .map((row, index) => {
      const link = roceLink(row.ipv4Cidr);
      return [
        FIRST_TABLE + index,
        row.interface,
        row.mac ?? "-",
        row.ipv4Cidr,
        link.address,
        link.network,
        link.peer ?? "-",
      ]
        .map(String)
        .join(" ");
    })
    .join("\n");

/** Renders the first-boot script for source-based routing: traffic of a RoCE address uses its own network interface (lifecycle 4.3). */
export const roceRouting = shellPart({
  name: "50-roce-routing.sh",
  owner: "muster",
  body: partFile("roce-routing.sh"),
  values: (input) =>
    input.roce.assignments.length === 0
      ? null
      : { ROCE_TABLE: tableLines(input), APPLY_SCRIPT: partFile("roce-routing-apply.sh").trimEnd() },
});
