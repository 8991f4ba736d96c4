import { recordAudit } from "../db/queries/api-requests.ts";
import type { ApiDependencies } from "./deps.ts";

/** One line and one row an address in this time, with how many there were: whoever tries tokens must not fill log and audit. */
const TELL_EVERY_MS = 60_000;
/** Addresses that are remembered; beyond it they share one account. */
const MOST_ADDRESSES = 1_000;
const OTHERS = "others";

interface Account {
  toldAt: number;
  untold: number;
}

/** Tokens that are no token of this hub: told in log and audit, and never what was sent. */
export class FailedLogins {
  readonly #deps: Pick<ApiDependencies, "inTx" | "log">;
  readonly #accounts = new Map<string, Account>();
  readonly #now: () => number;

  constructor(deps: Pick<ApiDependencies, "inTx" | "log">, now: () => number = () => performance.now()) {
    this.#deps = deps;
    this.#now = now;
  }

  note(at: { readonly address: string; readonly operationId: string; readonly requestId: string }): void {
    const now = this.#now();
    for (const [known, { toldAt }] of this.#accounts)
      if (now - toldAt > 2 * TELL_EVERY_MS) this.#accounts.delete(known);
    const address = this.#accounts.has(at.address) || this.#accounts.size < MOST_ADDRESSES ? at.address : OTHERS;
    const account = this.#accounts.get(address) ?? { toldAt: Number.NEGATIVE_INFINITY, untold: 0 };
    this.#accounts.set(address, account);
    account.untold += 1;
    if (now - account.toldAt < TELL_EVERY_MS) return;
    const attempts = account.untold;
    account.toldAt = now;
    account.untold = 0;
    const { log, inTx } = this.#deps;
    log.warn("a token was not accepted", { address, attempts, operation: at.operationId, request_id: at.requestId });
    inTx((tx) =>
      recordAudit(tx, {
        actor: "unknown",
        role: "none",
        action: "loginFailed",
        target: `addresses/${address}`,
        reason: null,
        requestId: at.requestId,
        details: { attempts, operation: at.operationId },
      }),
    ).catch((error: unknown) => log.warn("a failed login could not be audited", { address, error }));
  }
}
