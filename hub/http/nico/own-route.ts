import { parse } from "../problem.ts";
import { carryOut } from "../register.ts";
import { ROUTES } from "../routes/index.ts";
import type { NicoCall } from "./endpoint.ts";

/** Carries out a route of Muster's own API for the object of the request, so that NICo's clients get the same checks, audit and approvals. */
export async function carryOutOwn(
  call: NicoCall,
  operationId: string,
  id: string,
  body: unknown,
  /** The version of the object that a route of the method PATCH changes; NICo's clients send none. */
  ifMatch: string | null = null,
): Promise<void> {
  const route = ROUTES.find((one) => one.operationId === operationId);
  if (route?.body === undefined) throw new Error(`there is no route ${operationId} with a body`);
  const { actor, address, requestId, deps, approval } = call;
  const own = { params: { id }, query: {}, body: parse(route.body, body, "body"), ifMatch, accept: undefined };
  await carryOut(route, { ...own, actor, address, requestId, deps }, approval);
}
