import { APPROVAL_HEADER, type ApprovalId } from "../../shared/api/approvals.ts";
import { ApiError } from "../../shared/api/errors.ts";
import type { Json } from "../../shared/json.ts";
import type { Tx } from "../db/tx.ts";
import {
  type ApprovableRequest,
  type Asked,
  approvalRequired,
  askApproval,
  type Fixed,
} from "../people/approvals/ask-approval.ts";
import { useApproval } from "../people/approvals/use-approval.ts";
import { type Call, type Route, sourceOf } from "./route.ts";

const DEFAULT_HOURS = 24;

/** Says that the hub could carry out the request, but that the request waits for a second person's approval. */
export class NeedsApproval extends Error {
  readonly asked: Asked;
  readonly fixed: Fixed | null;
  constructor(asked: Asked, fixed: Fixed | null) {
    super("the request needs the approval of a second person");
    this.asked = asked;
    this.fixed = fixed;
  }
}

/** What the hub knows before a route's write about the approval that the request needs, and the check `mustBeApproved` to make after the write. */
export interface SecondPersonCheck {
  readonly approvalId: ApprovalId | null;
  /**
   * `mustBeApproved` throws `NeedsApproval` after the write if the request lacks a needed approval, and the transaction then undoes the write.
   * Because the hub calls `mustBeApproved` only after the write, nobody is asked to approve a request that the hub would refuse anyway. `touched` are
   * the ids of the objects that the route's write concerned.
   */
  mustBeApproved(touched: readonly string[] | undefined): void;
}

/**
 * Uses the approval that a header of the request names, and finds out whether the request needs an approval. The argument `named` is the value of the
 * header `Muster-Approval`.
 */
export async function checkSecondPerson(
  tx: Tx,
  route: Route,
  call: Call,
  named: string | undefined,
): Promise<SecondPersonCheck> {
  if (route.secondPerson === undefined) {
    if (named === undefined) return { approvalId: null, mustBeApproved: () => undefined };
    throw new ApiError(
      "validation_failed",
      `${route.operationId} needs no approval. Send it without ${APPROVAL_HEADER}.`,
      {
        errors: [{ pointer: "/headers/muster-approval", message: "is not taken here" }],
      },
    );
  }
  const fixed = (await route.fixes?.(call, tx)) ?? null;
  const asked = await route.secondPerson(call, tx, fixed);
  const by = { actor: call.actor, source: sourceOf(call), signIn: call.deps.signIn };
  const approvalId = named === undefined ? null : await useApproval(tx, named, requestOf(route, call, fixed), by);
  return {
    approvalId,
    mustBeApproved: (touched) => {
      if (fixed !== null && touched !== undefined) mustBeSame(fixed, touched);
      if (asked !== null && approvalId === null) throw new NeedsApproval(asked, fixed);
    },
  };
}

/**
 * Between two statements of one transaction, another transaction may make an object match a filter. The request's transaction holds no lock on an
 * object that matches the filter only later.
 */
function mustBeSame({ of, ids }: Fixed, touched: readonly string[]): void {
  const known = new Set(ids);
  if (touched.length === known.size && touched.every((id) => known.has(id))) return;
  throw new ApiError(
    "conflict",
    `The ${of} that the request concerns changed while the hub carried it out. Nothing was changed. Send the request again.`,
  );
}

/** Stores the request until a second person decides about it, and returns the error that tells this to the client. */
export const askSecondPerson = (route: Route, call: Call, { asked, fixed }: NeedsApproval): Promise<ApiError> => {
  const { actor, deps } = call;
  const by = { actor, source: sourceOf(call), hours: deps.approvalHours ?? DEFAULT_HOURS };
  return deps.inTx(async (tx) => approvalRequired(await askApproval(tx, requestOf(route, call, fixed), asked, by)));
};

function requestOf(route: Route, { params, body }: Call, fixed: Fixed | null): ApprovableRequest {
  if (route.right === "none") throw new Error(`${route.operationId} needs no right, so nobody can approve it`);
  const named = (params ?? {}) as Readonly<Record<string, string>>;
  const { operationId: operation, right: neededRight } = route;
  return { operation, neededRight, params: named, body: (body ?? null) as Json, fixed };
}
