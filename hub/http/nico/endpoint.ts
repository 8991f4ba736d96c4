import type { Right } from "../../../shared/api/rights.ts";
import type { Actor } from "../../people/actor.ts";
import type { Place } from "../../people/place.ts";
import type { ApiDependencies } from "../deps.ts";

/** A request in NICo's form, after its authentication. Query fields that an endpoint does not know are ignored, as NICo does. */
export interface NicoCall {
  readonly org: string;
  readonly params: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, string>>;
  readonly body: unknown;
  readonly page: { readonly limit: number; readonly offset: number };
  readonly actor: Actor;
  readonly address: string | null;
  readonly requestId: string;
  readonly approval: string | undefined;
  readonly deps: ApiDependencies;
}

export interface NicoAnswer {
  readonly body: unknown;
  /** The number of objects on all pages of a list; missing in an answer that is no list. */
  readonly total?: number;
}

export interface Endpoint {
  readonly operationId: string;
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** The path of an endpoint in NICo's form after `/v2/org/{org}/{nico|carbide}`, with parameters in braces. */
  readonly path: string;
  readonly permission: "read" | "write";
  readonly right: Right;
  readonly place: Place;
  readonly status: 200 | 201 | 202 | 204;
  answer(call: NicoCall): Promise<NicoAnswer>;
}
