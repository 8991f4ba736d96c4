import { ApiError } from "../../shared/api/errors.ts";
import { hasRight, RIGHTS, type Right, rolesWith } from "../../shared/api/rights.ts";
import { isReached, isUnlimited, type ObjectKind } from "../db/queries/reach.ts";
import type { Db } from "../db/tx.ts";
import type { Actor } from "./actor.ts";
import { noApproval } from "./approvals/no-approval.ts";

/** An object that a request names, by a parameter of the request's path or by a field of its body. */
type Named = { readonly of: ObjectKind; readonly param: string } | { readonly of: ObjectKind; readonly body: string };

/**
 * Where the object of a route's requests is (decision I3).
 * - `everywhere`: the route shows nothing that belongs to a site or a tenant, so every caller with the route's right may call it.
 * - `hub`: the route concerns the whole hub, so only a caller without a limit of sites and tenant may call it.
 * - `list`: the route's query leaves out what is outside of the caller's reach.
 * - a named object, or several: each object that the request names must be within the caller's reach. If the request names none of the objects that
 *   its route may name, the request concerns the whole hub.
 */
export type Place = "everywhere" | "hub" | "list" | Named | readonly Named[];

const WORDS: Readonly<Record<ObjectKind, string>> = {
  site: "MAAS site",
  node: "node",
  onboarding: "onboarding",
  decommission: "decommission",
  operation: "operation",
  onboarding_batch: "onboarding batch",
  decommission_batch: "decommission batch",
  allocation: "allocation",
  record: "sanitization record",
  repair: "repair",
  task: "task",
  approval: "approval",
  token: "token",
  sender: "signal sender",
  external_attempt: "external attempt",
  ssh_key: "SSH key",
  ssh_key_group: "SSH key group",
};

/** Throws `forbidden` unless the caller's role has the right, and the caller reaches the whole hub if the route concerns the whole hub. */
export function mustHaveRight(
  actor: Actor,
  { operationId, right, place }: { readonly operationId: string; readonly right: Right; readonly place: Place },
): void {
  if (!hasRight(actor.role, right))
    throw new ApiError(
      "forbidden",
      `${operationId} needs the right ${right} (${RIGHTS[right]}), which ${actor.name} with the role ${actor.role} does not have. Use a token of one of these roles: ${rolesWith(right).join(", ")}.`,
    );
  if (place === "hub") mustReachAll(actor, operationId);
}

function mustReachAll(actor: Actor, operationId: string): void {
  if (isUnlimited(actor)) return;
  throw new ApiError(
    "forbidden",
    `${operationId} concerns the whole hub, and ${actor.name} may act only ${limitOf(actor)}. Use a token that is not limited.`,
  );
}

const limitOf = ({ sites, tenant }: Actor): string =>
  tenant === null
    ? `at ${sites?.length ?? 0} sites`
    : `for the tenant ${tenant}${sites === null ? "" : ` at ${sites.length} sites`}`;

/**
 * Throws `not_found` if the request names an object outside of the caller's reach. The error for an object that does not exist has the same text as
 * for one outside of the caller's reach, so a caller cannot find out which other objects exist.
 */
export async function mustBeWithin(
  db: Db,
  actor: Actor,
  { operationId, place }: { readonly operationId: string; readonly place: Place },
  { params, body }: { readonly params: unknown; readonly body: unknown },
): Promise<void> {
  if (isUnlimited(actor) || place === "everywhere" || place === "list" || place === "hub") return;
  const named = (isSeveral(place) ? place : [place]).flatMap((one) => {
    const ids = "param" in one ? idsIn(params, one.param) : idsIn(body, one.body);
    return ids.map((id) => ({ kind: one.of, id }));
  });
  if (named.length === 0) mustReachAll(actor, operationId);
  for (const { kind, id } of named) if (!(await isReached(db, kind, id, actor))) throw unknown(kind, id);
}

const unknown = (kind: ObjectKind, id: string): ApiError =>
  kind === "approval" ? noApproval(id) : new ApiError("not_found", `There is no ${WORDS[kind]} ${id}.`);

const isSeveral = (place: Named | readonly Named[]): place is readonly Named[] => Array.isArray(place);

/** The ids in a field of a request: none if the request leaves the field out, and several if the field is a list. */
function idsIn(values: unknown, name: string): string[] {
  const value = (values as Readonly<Record<string, unknown>> | undefined)?.[name];
  return (Array.isArray(value) ? value : [value]).filter((one) => typeof one === "string");
}
