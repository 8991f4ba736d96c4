import { z } from "zod";
import { mustBeWithin } from "../../people/place.ts";
import { parse } from "../problem.ts";
import { carryOut } from "../register.ts";
import { Versioned } from "../route.ts";
import { ROUTES } from "../routes/index.ts";
import type { NicoCall } from "./endpoint.ts";

/** A request in NICo's form as a request to a route of Muster's own API: the id of the object in the path, the body, and the version to change. */
export interface OwnRequest {
  readonly id?: string;
  readonly body?: unknown;
  readonly version?: string;
}

/**
 * Carries out a route of Muster's own API, so that NICo's clients get the same checks, reach, audit and approvals. Returns the body of the route's
 * answer.
 */
export async function carryOutOwn(
  call: NicoCall,
  operationId: string,
  { id, body, version }: OwnRequest,
): Promise<unknown> {
  const route = ROUTES.find((one) => one.operationId === operationId);
  if (route === undefined) throw new Error(`there is no route ${operationId}`);
  const { actor, address, requestId, deps, approval } = call;
  const params = id === undefined ? {} : { id };
  const asked = { params, body: route.body === undefined ? undefined : parse(route.body, body, "body") };
  await mustBeWithin(deps.db, actor, route, asked);
  const own = { ...asked, query: {}, ifMatch: version ?? null, accept: undefined };
  const answer = await carryOut(route, { ...own, actor, address, requestId, deps }, approval);
  return answer instanceof Versioned ? answer.body : answer;
}

const Created = z.object({ id: z.uuid() });

/** Carries out a route of Muster's own API that creates an object, and returns the id of the object. */
export async function createOwn(call: NicoCall, operationId: string, body: unknown): Promise<string> {
  return Created.parse(await carryOutOwn(call, operationId, { body })).id;
}
