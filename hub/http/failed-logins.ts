import { recordAudit } from "../db/queries/api-requests.ts";
import { addressKey } from "../gateway/address-budgets.ts";
import type { ApiDependencies } from "./deps.ts";

/**
 * The interval in which the hub writes at most one log line and one audit row about failed logins from one address. If each failed login made a log
 * line and an audit row, an attacker could fill the log and the audit.
 */
const TELL_EVERY_MS = 60_000;
/**
 * The largest number of client addresses for which the hub counts failed logins separately. The client addresses above `MOST_ADDRESSES` share one
 * counter of failed logins.
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
  /** The timer at whose end the hub reports the failed logins that it has counted but not reported. */
  timer: NodeJS.Timeout | null;
}

/** Neither the log nor the audit gets the token that the client sent. */
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

  /** Reports the first failed login of an address at once, and the address's next failed logins together after `TELL_EVERY_MS`. */
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
