import { recordAudit } from "../db/queries/audit-logs.ts";
import { addressKey } from "../gateway/address-budgets.ts";
import { BoundedReports } from "./bounded-reports.ts";
import type { ApiDependencies } from "./deps.ts";

interface Attempt {
  readonly address: string;
  readonly operationId: string;
  readonly requestId: string;
}

/** Neither the log nor the audit gets the token that the client sent. */
export class FailedLogins {
  readonly #deps: Pick<ApiDependencies, "inTx" | "log">;
  readonly #reports: BoundedReports<Attempt>;

  constructor(deps: Pick<ApiDependencies, "inTx" | "log">, now?: () => number, tellEveryMs?: number) {
    this.#deps = deps;
    this.#reports = new BoundedReports({
      tell: (key, kept, count) => this.#tell(key, kept.at(-1) ?? kept[0], count),
      now,
      tellEveryMs,
    });
  }

  /** Reports the first failed login of an address at once, and the address's next failed logins together after a minute. */
  note(attempt: Attempt): void {
    this.#reports.note(addressKey(attempt.address), attempt);
  }

  #tell(address: string, { address: exact, operationId: operation, requestId }: Attempt, attempts: number): void {
    const { log, inTx } = this.#deps;
    log.warn("an API token was refused", { address, attempts, operation, request_id: requestId });
    inTx((tx) =>
      recordAudit(tx, {
        actor: "unknown",
        role: "none",
        address: exact,
        action: "loginFailed",
        target: `addresses/${address}`,
        reason: null,
        requestId,
        outcome: "refused",
        errorCode: "unauthenticated",
        details: { attempts, operation },
      }),
    ).catch((error: unknown) => log.warn("a failed login could not be audited", { address, error }));
  }
}
