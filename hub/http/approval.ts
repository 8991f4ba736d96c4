import { APPROVAL_HEADER, type ApprovalId } from "../../shared/api/approvals.ts";
import { ApiError } from "../../shared/api/errors.ts";
import type { Json } from "../../shared/json.ts";
import type { Tx } from "../db/tx.ts";
import { type ApprovableRequest, type Asked, approvalRequired, askApproval } from "../people/approvals/ask-approval.ts";
import { useApproval } from "../people/approvals/use-approval.ts";
import { type Call, type Route, sourceOf } from "./route.ts";

const DEFAULT_HOURS = 24;

/** The request could be carried out, and waits for a second person. */
export class NeedsApproval extends Error {
  readonly asked: Asked;
  constructor(asked: Asked) {
    super("the request needs the approval of a second person");
    this.asked = asked;
  }
}

/** What the transaction of a write does about a second person: before the write, and after it. */
export interface SecondPersonCheck {
  readonly approvalId: ApprovalId | null;
  /**
   * Throws `NeedsApproval` after the write, which the transaction then undoes. So a request that the hub would refuse anyway asks nobody for an
   * approval.
   */
  mustBeApproved(): void;
}

/** Uses the approval that the request names, and finds out whether the request needs one. `named` is the value of the header. */
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
  const asked = await route.secondPerson(call, tx);
  const by = { actor: call.actor, source: sourceOf(call), signIn: call.deps.signIn };
  const approvalId = named === undefined ? null : await useApproval(tx, named, requestOf(route, call), by);
  return {
    approvalId,
    mustBeApproved: () => {
      if (asked !== null && approvalId === null) throw new NeedsApproval(asked);
    },
  };
}

/** Stores the request for a second person, and returns the error that says so. */
export const askSecondPerson = (route: Route, call: Call, { asked }: NeedsApproval): Promise<ApiError> => {
  const { actor, deps } = call;
  const by = { actor, source: sourceOf(call), hours: deps.approvalHours ?? DEFAULT_HOURS };
  return deps.inTx(async (tx) => approvalRequired(await askApproval(tx, requestOf(route, call), asked, by)));
};

function requestOf(route: Route, { params, body }: Call): ApprovableRequest {
  if (route.right === "none") throw new Error(`${route.operationId} needs no right, so nobody can approve it`);
  const named = (params ?? {}) as Readonly<Record<string, string>>;
  return { operation: route.operationId, neededRight: route.right, params: named, body: (body ?? null) as Json };
}
