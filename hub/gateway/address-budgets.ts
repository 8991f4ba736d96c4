import { isIPv6 } from "node:net";
import { plainAddress } from "../outbound/addresses.ts";
import { ADDRESS_RATES, type AddressKind, ask, type Bucket, isFull, type Rate } from "./budgets.ts";

/**
 * The number of client addresses for which the hub keeps budgets of requests. If more than `MOST_ADDRESSES` addresses send requests, the hub forgets
 * the least recently used addresses. Budgets for single addresses could not limit a client with more than `MOST_ADDRESSES` addresses anyway.
 */
const MOST_ADDRESSES = 20_000;

/** The budgets of all addresses from which clients send requests to this hub. */
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

  /** Zero if the request is within its address's budget; otherwise the milliseconds until the next request is allowed. */
  ask(address: string, kind: AddressKind): number {
    const key = `${kind} ${addressKey(address)}`;
    const { bucket, waitMs } = ask(this.#rates[kind], this.#buckets.get(key), this.#now());
    this.#buckets.delete(key);
    this.#buckets.set(key, bucket);
    for (const oldest of this.#buckets.keys()) {
      if (this.#buckets.size <= MOST_ADDRESSES) break;
      this.#buckets.delete(oldest);
    }
    return waitMs;
  }

  /** Deletes each address's token bucket that is full, because a new bucket would be full too. */
  sweep(): void {
    const now = this.#now();
    for (const [key, bucket] of this.#buckets)
      if (isFull(this.#rates[key.split(" ", 1)[0] as AddressKind], bucket, now)) this.#buckets.delete(key);
  }
}

/**
 * The key under which `AddressBudgets` keeps the request budgets of a client's IP address. An IPv6 client owns a whole /64, so the client's key is
 * the /64.
 */
export function addressKey(address: string): string {
  const [plain = ""] = plainAddress(address).split("%");
  if (!isIPv6(plain)) return plain;
  const [head = "", tail] = plain.toLowerCase().split("::");
  const before = head === "" ? [] : head.split(":");
  // A dotted IPv4 end of an IPv6 address stands for two groups, which are never among the first four.
  const after = tail === undefined || tail === "" ? [] : tail.replace(/\d+\.\d+\.\d+\.\d+$/, "0:0").split(":");
  const zeros = tail === undefined ? 0 : 8 - before.length - after.length;
  const groups = [...before, ...Array<string>(Math.max(0, zeros)).fill("0"), ...after];
  return `${groups
    .slice(0, 4)
    .map((group) => group.replace(/^0+(?=.)/, ""))
    .join(":")}::/64`;
}
