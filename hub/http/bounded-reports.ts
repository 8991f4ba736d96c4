/**
 * The interval in which the hub reports events with the same key, e.g. the same client address, at most once. If the hub reported every event at
 * once, a client could fill the log and the audit.
 */
const TELL_EVERY_MS = 60_000;
/** The largest number of keys whose events the hub counts separately. All keys above the number `MOST_KEYS` share one counter. */
const MOST_KEYS = 1_000;
export const OTHERS = "others";

/** The largest number of events of one key that the hub keeps until their report; of further ones it keeps the last. */
const MOST_KEPT = 20;

interface Account<T> {
  toldAt: number;
  untold: number;
  /** Events of the key that are not reported yet, the last one at the end. */
  kept: T[];
  /** The timer at whose end the hub reports the events that it has counted but not reported. */
  timer: NodeJS.Timeout | null;
}

interface Options<T> {
  /**
   * Reports `count` events with the same key; `key` is `OTHERS` for all keys that share one counter. `kept` has at most `MOST_KEPT` of the events, in
   * their order, and always the last one.
   */
  readonly tell: (key: string, kept: readonly [T, ...T[]], count: number) => void;
  readonly now?: (() => number) | undefined;
  readonly tellEveryMs?: number | undefined;
}

/** Reports the first event with a given key at once, and the next events with the same key together after an interval. */
export class BoundedReports<T> {
  readonly #accounts = new Map<string, Account<T>>();
  readonly #tell: Options<T>["tell"];
  readonly #now: () => number;
  readonly #tellEveryMs: number;

  constructor({ tell, now = () => performance.now(), tellEveryMs = TELL_EVERY_MS }: Options<T>) {
    this.#tell = tell;
    this.#now = now;
    this.#tellEveryMs = tellEveryMs;
  }

  note(wanted: string, about: T): void {
    const now = this.#now();
    for (const [known, { toldAt }] of this.#accounts)
      if (now - toldAt > 2 * this.#tellEveryMs) this.#accounts.delete(known);
    const key = this.#accounts.has(wanted) || this.#accounts.size < MOST_KEYS ? wanted : OTHERS;
    const account = this.#accounts.get(key) ?? { toldAt: Number.NEGATIVE_INFINITY, untold: 0, kept: [], timer: null };
    this.#accounts.set(key, account);
    account.untold += 1;
    if (account.kept.length === MOST_KEPT) account.kept.pop();
    account.kept.push(about);
    const untilMs = account.toldAt + this.#tellEveryMs - now;
    if (untilMs <= 0) this.#report(key, account);
    else account.timer ??= setTimeout(() => this.#report(key, account), untilMs).unref();
  }

  #report(key: string, account: Account<T>): void {
    if (account.timer !== null) clearTimeout(account.timer);
    const { untold, kept } = account;
    Object.assign(account, { toldAt: this.#now(), untold: 0, kept: [], timer: null });
    const [first, ...others] = kept;
    if (first !== undefined) this.#tell(key, [first, ...others], untold);
  }
}
