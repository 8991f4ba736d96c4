import { isIPv6 } from "node:net";
import { budgetsExceeded } from "../metrics/counted/budgets.ts";
import { plainAddress } from "../outbound/addresses.ts";
import { ADDRESS_RATES, type AddressKind, ask, type Bucket, isFull, type Rate } from "./budgets.ts";

/**
 * The largest number of client addresses for which the hub keeps request budgets. When more than `MOST_ADDRESSES` addresses send requests, the hub
 * forgets the least recently used addresses. A budget for each address cannot limit a client that owns more than `MOST_ADDRESSES` addresses.
 */
const MOST_ADDRESSES = 20_000;

export class AddressBudgets {
  readonly #rates: Readonly<Record<AddressKind, Rate>>;
  readonly #buckets = new Map<string, Bucket>();
  readonly #now: () => number;

  constructor(rates: Readonly<Record<AddressKind, Rate>> = ADDRESS_RATES, now: () => number = () => performance.now()) {
    this.#rates = rates;
    this.#now = now;
  }

  get size(): number {
    return this.#buckets.size;
  }

  /**
   * Charges one request to the budget of a client's address. `ask` returns zero if the hub may answer the request, and otherwise the milliseconds
   * until the address may send its next request.
   */
  ask(address: string, kind: AddressKind): number {
    const key = `${kind} ${addressKey(address)}`;
    const { bucket, waitMs } = ask(this.#rates[kind], this.#buckets.get(key), this.#now());
    this.#buckets.delete(key);
    this.#buckets.set(key, bucket);
    for (const oldest of this.#buckets.keys()) {
      if (this.#buckets.size <= MOST_ADDRESSES) break;
      this.#buckets.delete(oldest);
    }
    if (waitMs > 0) budgetsExceeded.add({ of: "address", budget: kind });
    return waitMs;
  }

  /** Deletes every full token bucket of an address, because a new bucket would be full too. */
  sweep(): void {
    const now = this.#now();
    for (const [key, bucket] of this.#buckets)
      if (isFull(this.#rates[key.split(" ", 1)[0] as AddressKind], bucket, now)) this.#buckets.delete(key);
  }
}

/**
 * The key under which `AddressBudgets` keeps the request budgets of a client's IP address. An IPv6 client owns a whole /64 network, so all addresses
 * of one /64 network share one request budget.
 */
export function addressKey(address: string): string {
  const [plain = ""] = plainAddress(address).split("%");
  if (!isIPv6(plain)) return plain;
  const [head = "", tail] = plain.toLowerCase().split("::");
  const before = head === "" ? [] : head.split(":");
  // A dotted IPv4 end of an IPv6 address stands for two 16-bit groups, which are never among the address's first four groups.
  const after = tail === undefined || tail === "" ? [] : tail.replace(/\d+\.\d+\.\d+\.\d+$/, "0:0").split(":");
  const zeros = tail === undefined ? 0 : 8 - before.length - after.length;
  const groups = [...before, ...Array<string>(Math.max(0, zeros)).fill("0"), ...after];
  return `${groups
    .slice(0, 4)
    .map((group) => group.replace(/^0+(?=.)/, ""))
    .join(":")}::/64`;
}
