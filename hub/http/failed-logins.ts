import { recordAudit } from "../db/queries/api-requests.ts";
import { addressKey } from "../gateway/address-budgets.ts";
import type { ApiDependencies } from "./deps.ts";

/**
 * Failed logins from one address make at most one log line and one audit row, with the number of attempts, within `TELL_EVERY_MS`. The limit on lines
 * and rows about failed logins keeps attackers from filling the log and the audit.
 */
const TELL_EVERY_MS = 60_000;
/**
 * The hub counts failed logins separately for at most `MOST_ADDRESSES` client addresses. After `MOST_ADDRESSES` client addresses have counters of
 * their own, all new addresses share one counter of failed logins.
 */
const MOST_ADDRESSES = 1_000;
const OTHERS = "others";

interface Attempt {
  readonly address: string;
  readonly operationId: string;
  readonly requestId: string;
}

interface Account {
  toldAt: number;
  untold: number;
  /** When the timer fires, the hub reports the failed logins that it has counted and not reported yet. */
  timer: NodeJS.Timeout | null;
}

/** Logs and audits failed logins, and never writes the token that the client sent. */
export class FailedLogins {
  readonly #deps: Pick<ApiDependencies, "inTx" | "log">;
  readonly #accounts = new Map<string, Account>();
  readonly #now: () => number;
  readonly #tellEveryMs: number;

  constructor(
    deps: Pick<ApiDependencies, "inTx" | "log">,
    now: () => number = () => performance.now(),
    tellEveryMs = TELL_EVERY_MS,
  ) {
    this.#deps = deps;
    this.#now = now;
    this.#tellEveryMs = tellEveryMs;
  }

  /** Reports the first failed login of an address at once, and the address's following failed logins together. */
  note(attempt: Attempt): void {
    const now = this.#now();
    for (const [known, { toldAt }] of this.#accounts)
      if (now - toldAt > 2 * this.#tellEveryMs) this.#accounts.delete(known);
    const key = addressKey(attempt.address);
    const address = this.#accounts.has(key) || this.#accounts.size < MOST_ADDRESSES ? key : OTHERS;
    const account = this.#accounts.get(address) ?? { toldAt: Number.NEGATIVE_INFINITY, untold: 0, timer: null };
    this.#accounts.set(address, account);
    account.untold += 1;
    const last = { ...attempt, address };
    const untilMs = account.toldAt + this.#tellEveryMs - now;
    if (untilMs <= 0) this.#tell(account, last);
    else account.timer ??= setTimeout(() => this.#tell(account, last), untilMs).unref();
  }

  #tell(account: Account, { address, operationId: operation, requestId }: Attempt): void {
    if (account.timer !== null) clearTimeout(account.timer);
    const attempts = account.untold;
    Object.assign(account, { toldAt: this.#now(), untold: 0, timer: null });
    const { log, inTx } = this.#deps;
    log.warn("an API token was refused", { address, attempts, operation, request_id: requestId });
    inTx((tx) =>
      recordAudit(tx, {
        actor: "unknown",
        role: "none",
        action: "loginFailed",
        target: `addresses/${address}`,
        reason: null,
        requestId,
        details: { attempts, operation },
      }),
    ).catch((error: unknown) => log.warn("a failed login could not be audited", { address, error }));
  }
}
