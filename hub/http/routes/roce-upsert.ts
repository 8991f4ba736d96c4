import type { ParsedRoceRow, RoceAssignmentRow, RoceAssignmentWritten } from "../../../shared/api/sites.ts";

type Outcome = RoceAssignmentWritten["items"][number];

interface Kept {
  readonly hostname: string;
  readonly interface: string;
  readonly ipv4Cidr: string;
}
interface RocePlan<K> {
  /** The outcome of each RoCE row of an upsert request, in the order of the request. */
  readonly outcomes: readonly Outcome[];
  /** The RoCE rows to write, each with the stored RoCE row that it replaces. */
  readonly changes: readonly { readonly row: RoceAssignmentRow; readonly replaces: K | null }[];
}

const placeOf = (row: { readonly hostname: string; readonly interface: string }): string =>
  `${row.hostname} ${row.interface}`;
/**
 * Cuts off the prefix length of an address, so that `172.30.9.61/31` becomes `172.30.9.61`. Two RoCE rows with the same address but different prefix
 * lengths conflict.
 */
const addressOf = (cidr: string): string => cidr.split("/", 1)[0] ?? "";

/**
 * Plans an upsert of RoCE rows (lifecycle 3.3). `planRoceUpsert` refuses three kinds of rows: an invalid row, a second row for one host and
 * interface, and a row whose address belongs to another interface. A refused RoCE row does not affect the RoCE rows that `planRoceUpsert` accepts.
 * Two RoCE rows of one upsert request may exchange their IP addresses. The interface of a refused row keeps its present address, so `planRoceUpsert`
 * also refuses every row that wants the kept address.
 */
export function planRoceUpsert<K extends Kept>(items: readonly ParsedRoceRow[], kept: readonly K[]): RocePlan<K> {
  const faults = new Map<number, string>();
  const rows = items.map((item, index) => {
    if ("row" in item) return item.row;
    faults.set(index, item.fault);
    return null;
  });
  const keptAt = new Map(kept.map((row) => [placeOf(row), row]));
  refuseRepeated(rows, faults, keptAt);
  const holders = new Map(kept.map((row) => [addressOf(row.ipv4Cidr), row]));
  let refused: number;
  do {
    refused = faults.size;
    refuseTaken(rows, faults, holders);
  } while (faults.size > refused);
  const outcomes: Outcome[] = [];
  const changes: { row: RoceAssignmentRow; replaces: K | null }[] = [];
  rows.forEach((row, index) => {
    const fault = faults.get(index);
    if (row === null || fault !== undefined) {
      outcomes.push({ index, outcome: "failed", message: fault ?? "is not valid" });
      return;
    }
    const replaces = keptAt.get(placeOf(row)) ?? null;
    const outcome = replaces === null ? "created" : replaces.ipv4Cidr === row.ipv4_cidr ? "unchanged" : "updated";
    outcomes.push({ index, outcome });
    if (outcome !== "unchanged") changes.push({ row, replaces });
  });
  return { outcomes, changes };
}

type Rows = readonly (RoceAssignmentRow | null)[];

/**
 * Of two RoCE rows for one host and interface, `refuseRepeated` refuses the second row. Of two RoCE rows with one address, `refuseRepeated` keeps the
 * row whose interface has the address in the database, or else the first row.
 */
function refuseRepeated(rows: Rows, faults: Map<number, string>, keptAt: ReadonlyMap<string, Kept>): void {
  const places = new Map<string, number>();
  const addresses = new Map<string, number>();
  rows.forEach((row, index) => {
    if (row === null) return;
    const has = keptAt.get(placeOf(row))?.ipv4Cidr;
    const address = addressOf(row.ipv4_cidr);
    if (has !== undefined && addressOf(has) === address && !addresses.has(address)) addresses.set(address, index);
  });
  rows.forEach((row, index) => {
    if (row === null) return;
    const samePlace = places.get(placeOf(row));
    const sameAddress = addresses.get(addressOf(row.ipv4_cidr));
    if (samePlace !== undefined) faults.set(index, `is for the same host and interface as items[${samePlace}]`);
    else if (sameAddress !== undefined && sameAddress !== index)
      faults.set(index, `has the same address as items[${sameAddress}]`);
    else {
      places.set(placeOf(row), index);
      addresses.set(addressOf(row.ipv4_cidr), index);
    }
  });
}

/** Refuses RoCE rows whose address stays with another interface. A refused RoCE row does not change the address of its interface. */
function refuseTaken(rows: Rows, faults: Map<number, string>, holders: ReadonlyMap<string, Kept>): void {
  const goesTo = new Map<string, string>();
  rows.forEach((row, index) => {
    if (row !== null && !faults.has(index)) goesTo.set(placeOf(row), addressOf(row.ipv4_cidr));
  });
  rows.forEach((row, index) => {
    if (row === null || faults.has(index)) return;
    const address = addressOf(row.ipv4_cidr);
    const holder = holders.get(address);
    if (holder === undefined || placeOf(holder) === placeOf(row)) return;
    if ((goesTo.get(placeOf(holder)) ?? address) === address)
      faults.set(index, `ipv4_cidr ${row.ipv4_cidr} belongs to ${placeOf(holder)} already`);
  });
}
