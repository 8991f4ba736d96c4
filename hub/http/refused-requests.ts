import { API_ERRORS, type ApiErrorCode } from "../../shared/api/errors.ts";
import { type AuditSource, recordAudit } from "../db/queries/audit-logs.ts";
import { BoundedReports, OTHERS } from "./bounded-reports.ts";
import type { ApiDependencies } from "./deps.ts";

/** The facts about a known client's request that the hub needs to audit a refusal of the request. */
export interface AuditedRequest {
  readonly source: AuditSource;
  /** True if the client may see only some sites, or only one tenant. */
  readonly isLimited: boolean;
  readonly operationId: string;
  readonly target: string;
}

interface Refusal extends AuditedRequest {
  readonly code: ApiErrorCode;
}

/**
 * The hub audits the refusals with these HTTP statuses: 403, because the client has no right to the action, and 409, because the object's state
 * forbids the action.
 */
const AUDITED_STATUSES: readonly number[] = [403, 409];
/**
 * A client that is limited to sites or to a tenant gets the error `not_found` for an object of another site or tenant. The hub audits every answer
 * `not_found` to a client that is limited to sites or to a tenant.
 */
const isAudited = ({ isLimited }: AuditedRequest, code: ApiErrorCode): boolean =>
  AUDITED_STATUSES.includes(API_ERRORS[code].status) || (isLimited && code === "not_found");

const VALUE = /^[\w.:-]{1,128}$/;

/** The kinds of objects that have another name in the audit than in the paths of their routes. */
const KINDS: Readonly<Record<string, string>> = {
  "readiness/senders": "signal-senders",
  "readiness/signals": "readiness-signals",
};

/** Returns the object in a request's path, for example `nodes/<id>`; only its kind if the path names no object. */
export function targetOfPath(path: string, params: Readonly<Record<string, string>>): string {
  const [area = "", part = "", object = ""] = path.replace("/api/v1/", "").split("/");
  const kind = KINDS[`${area}/${part}`] ?? part;
  const [, name] = /^\{(\w+)\}$/.exec(object) ?? [];
  const value = name === undefined ? undefined : params[name];
  return value !== undefined && VALUE.test(value) ? `${kind}/${value}` : kind;
}

/** Audits refused requests: the first refusal of an actor, operation and error at once, and the next ones together after a minute. */
export class RefusedRequests {
  readonly #deps: Pick<ApiDependencies, "inTx" | "log">;
  readonly #reports: BoundedReports<Refusal>;

  constructor(deps: Pick<ApiDependencies, "inTx" | "log">, now?: () => number) {
    this.#deps = deps;
    this.#reports = new BoundedReports({ tell: (key, kept, count) => this.#tell(key, kept, count), now });
  }

  note(request: AuditedRequest, code: ApiErrorCode): void {
    if (!isAudited(request, code)) return;
    this.#reports.note(JSON.stringify([request.source.actor, request.operationId, code]), { ...request, code });
  }

  /**
   * An entry for several objects names only their kind as its target, so that it belongs to no site: a reader who is limited to one site does not see the
   * objects of another. The actors that share the counter `OTHERS` stay untold.
   */
  #tell(key: string, kept: readonly [Refusal, ...Refusal[]], requests: number): void {
    const { log, inTx } = this.#deps;
    const { source, operationId, target: last, code } = kept.at(-1) ?? kept[0];
    const targets = key === OTHERS ? [last] : [...new Set(kept.map((one) => one.target))];
    const isOne = targets.length === 1;
    const target = isOne ? last : (last.split("/")[0] ?? last);
    const details = { requests, ...(isOne ? {} : { targets }) };
    const entry = { ...source, action: operationId, target, reason: null, details };
    inTx((tx) => recordAudit(tx, { ...entry, outcome: "refused", errorCode: code })).catch((error: unknown) =>
      log.warn("a refused request could not be audited", { operation: operationId, error }),
    );
  }
}
