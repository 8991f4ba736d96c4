import { ApiError } from "../../shared/api/errors.ts";
import type { Rate } from "../gateway/budgets.ts";
import { ask, type Bucket, isFull, TOKEN_RATES, type TokenKind } from "../gateway/budgets.ts";

export type TokenRates = Readonly<Record<TokenKind, Rate>>;

interface Account {
  readonly name: string;
  readonly buckets: Map<TokenKind, Bucket>;
}

/** Beyond it accounts that say nothing any more are forgotten; a hub has a few tokens, and those that it does not know have none. */
const SWEEP_BEYOND = 1_000;

/**
 * What each token of the admin API may ask of this hub. By the token's hash, so that who is over the budget is told so before the database is asked for the
 * token: a script that has run away costs others nothing.
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

  /** Whether the token was good when it was used last; then the request is charged, and refused by throwing where the budget is used up. */
  chargeKnown(tokenSha256: string, kinds: readonly TokenKind[]): boolean {
    const account = this.#accounts.get(tokenSha256);
    if (account === undefined) return false;
    this.#charge(account, kinds);
    return true;
  }

  /** The first request of a token that turned out to be good. */
  chargeNew(tokenSha256: string, name: string, kinds: readonly TokenKind[]): void {
    const account = this.#accounts.get(tokenSha256) ?? { name, buckets: new Map() };
    this.#accounts.set(tokenSha256, account);
    this.#charge(account, kinds);
    if (this.#accounts.size > SWEEP_BEYOND) this.#sweep();
  }

  #charge({ name, buckets }: Account, kinds: readonly TokenKind[]): void {
    for (const kind of kinds) {
      const { bucket, waitMs } = ask(this.#rates[kind], buckets.get(kind), this.#now());
      buckets.set(kind, bucket);
      if (waitMs === 0) continue;
      const retryAfterSeconds = Math.ceil(waitMs / 1000);
      throw new ApiError(
        "rate_limited",
        `The token ${name} has sent this hub too many ${WORDS[kind]}: ${this.#rates[kind].perMinute} a minute are taken. Nothing was done. Ask again in ${retryAfterSeconds} s, and see which program asks so often.`,
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
