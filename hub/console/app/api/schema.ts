/**
 * The types of the API, which `npm run console:types` generates from docs/openapi.json. The compiler checks each request of the console against the
 * API's description, as for any other client of the API.
 */
import type { operations, paths } from "../../../../.muster/console/openapi.d.ts";

export type { paths };

type Json<Response> = Response extends { content: { "application/json": infer Body } } ? Body : never;
type Responses<Name extends keyof operations> = operations[Name]["responses"];

/** The answer of an operation of the API, for example `Answer<"getOverview">`. */
export type Answer<Name extends keyof operations> = Json<
  Responses<Name>[Extract<keyof Responses<Name>, 200 | 201 | 202>]
>;

/** The query parameters of an operation of the API. */
export type Query<Name extends keyof operations> = NonNullable<operations[Name]["parameters"]["query"]>;

/** The body of a request of an operation of the API, for example `Body<"createToken">`. */
export type Body<Name extends keyof operations> = operations[Name] extends {
  requestBody?: { content: { "application/json": infer Content } };
}
  ? Content
  : never;
