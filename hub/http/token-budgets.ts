import { ApiError } from "../../shared/api/errors.ts";
import type { Rate } from "../gateway/budgets.ts";
import { ask, type Bucket, isFull, TOKEN_RATES, type TokenKind } from "../gateway/budgets.ts";
import { budgetsExceeded } from "../metrics/counted/budgets.ts";

export type TokenRates = Readonly<Record<TokenKind, Rate>>;

interface Account {
  readonly name: string;
  readonly buckets: Map<TokenKind, Bucket>;
}

/**
 * The number of tokens with a request budget (rate limit) above which the hub forgets each token that has used nothing of its budget. A hub has only
 * a few tokens, and keeps no budget for unknown tokens.
 */
const SWEEP_BEYOND = 1_000;

/**
 * The budgets that limit how many requests each token of the admin API may send to this hub. The hub finds the request budget of an API token by the
 * token's hash, so it refuses a token over its budget without a database query. Because each token has its own budget, a script out of control does
 * not slow down clients with another token.
 */
export class TokenBudgets {
  readonly #rates: TokenRates;
  readonly #accounts = new Map<string, Account>();
  readonly #now: () => number;

  constructor(rates: TokenRates = TOKEN_RATES, now: () => number = () => performance.now()) {
    this.#rates = rates;
    this.#now = now;
  }

  get size(): number {
    return this.#accounts.size;
  }

  /**
   * Charges a request to the request budget (rate limit) of a known token, and throws if the budget is exhausted. `chargeKnown` returns false for a
   * token that the hub does not know to be valid.
   */
  chargeKnown(tokenSha256: string, kinds: readonly TokenKind[]): boolean {
    const account = this.#accounts.get(tokenSha256);
    if (account === undefined) return false;
    this.#charge(account, kinds);
    return true;
  }

  /** Charges the first request of an API token to the token's request budget (rate limit), after the hub has found that the token is valid. */
  chargeNew(tokenSha256: string, name: string, kinds: readonly TokenKind[]): void {
    const account = this.#accounts.get(tokenSha256) ?? { name, buckets: new Map() };
    this.#accounts.set(tokenSha256, account);
    this.#charge(account, kinds);
    if (this.#accounts.size > SWEEP_BEYOND) this.#sweep();
  }

  /** Forgets the request budget (rate limit) of an API token that is no longer valid. */
  forget(tokenSha256: string): void {
    this.#accounts.delete(tokenSha256);
  }

  #charge({ name, buckets }: Account, kinds: readonly TokenKind[]): void {
    for (const kind of kinds) {
      const { bucket, waitMs } = ask(this.#rates[kind], buckets.get(kind), this.#now());
      buckets.set(kind, bucket);
      if (waitMs === 0) continue;
      budgetsExceeded.add({ of: "token", budget: kind });
      const retryAfterSeconds = Math.ceil(waitMs / 1000);
      throw new ApiError(
        "rate_limited",
        `The token ${name} has sent this hub too many ${WORDS[kind]}: ${this.#rates[kind].perMinute} per minute are allowed. Nothing was done. Try again in ${retryAfterSeconds} s, and find the program that sends so many.`,
        { retryAfterSeconds },
      );
    }
  }

  #sweep(): void {
    const now = this.#now();
    for (const [token, { buckets }] of this.#accounts)
      if ([...buckets].every(([kind, bucket]) => isFull(this.#rates[kind], bucket, now))) this.#accounts.delete(token);
  }
}

const WORDS = { request: "requests", write: "changes" } as const satisfies Record<TokenKind, string>;
