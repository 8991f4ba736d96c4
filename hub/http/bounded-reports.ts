/**
 * The interval in which the hub reports events with the same key, e.g. the same client address, at most once. Without this interval between reports,
 * a client could fill the log and the audit.
 */
const TELL_EVERY_MS = 60_000;
/** The largest number of keys whose events the hub counts separately. The keys above `MOST_KEYS` share one counter. */
const MOST_KEYS = 1_000;
const OTHERS = "others";

interface Account {
  toldAt: number;
  untold: number;
  /** The timer at whose end the hub reports the events that it has counted but not reported. */
  timer: NodeJS.Timeout | null;
}

interface Options<T> {
  /** Reports the last one of `count` events with the same key; `key` is `OTHERS` for all keys that share one counter. */
  readonly tell: (key: string, last: T, count: number) => void;
  readonly now?: (() => number) | undefined;
  readonly tellEveryMs?: number | undefined;
}

/** Reports the first event with a given key at once, and the next events with the same key together after an interval. */
export class BoundedReports<T> {
  readonly #accounts = new Map<string, Account>();
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
    const account = this.#accounts.get(key) ?? { toldAt: Number.NEGATIVE_INFINITY, untold: 0, timer: null };
    this.#accounts.set(key, account);
    account.untold += 1;
    const untilMs = account.toldAt + this.#tellEveryMs - now;
    if (untilMs <= 0) this.#report(key, account, about);
    else account.timer ??= setTimeout(() => this.#report(key, account, about), untilMs).unref();
  }

  #report(key: string, account: Account, about: T): void {
    if (account.timer !== null) clearTimeout(account.timer);
    const count = account.untold;
    Object.assign(account, { toldAt: this.#now(), untold: 0, timer: null });
    this.#tell(key, about, count);
  }
}
