import type { Context, Hono } from "hono";
import { z } from "zod";
import { APPROVAL_HEADER } from "../../../shared/api/approvals.ts";
import { ApiError, type Problem } from "../../../shared/api/errors.ts";
import { mustBeWithin } from "../../people/place.ts";
import { type ApiGuard, authorize, type Env } from "../authorize.ts";
import type { ApiDependencies } from "../deps.ts";
import { readJson } from "../json-body.ts";
import { nicoAbsent } from "./absent.ts";
import { nicoChanges } from "./changes.ts";
import { nicoCreateInstance } from "./create-instance.ts";
import { nicoCreateInstanceBatch } from "./create-instance-batch.ts";
import type { Endpoint, NicoAnswer } from "./endpoint.ts";
import { nicoExpectedMachines } from "./expected-machines.ts";
import { nicoHealthReports } from "./health-reports.ts";
import { idIn, pageIn } from "./inputs.ts";
import { nicoInstanceTypes } from "./instance-types.ts";
import { nicoInstances } from "./instances.ts";
import { nicoMachines } from "./machines.ts";
import { nicoSites } from "./sites.ts";
import { nicoSshKeyGroups } from "./ssh-key-groups.ts";
import { nicoSshKeys } from "./ssh-keys.ts";

/** Every request in NICo's form that the hub answers (decision R3). */
export const ENDPOINTS: readonly Endpoint[] = [
  ...nicoSites,
  ...nicoMachines,
  ...nicoHealthReports,
  ...nicoExpectedMachines,
  // The first endpoint whose path fits handles a request, so the instance types come before `/instance/{id}`, whose path also fits `/instance/type`.
  ...nicoInstanceTypes,
  ...nicoInstances,
  ...nicoChanges,
  ...nicoCreateInstance,
  ...nicoCreateInstanceBatch,
  ...nicoSshKeys,
  ...nicoSshKeyGroups,
  ...nicoAbsent,
];

/** NICo's clients call the API by one of two names in their settings: `carbide` is the older name, and still the default. */
const API_NAMES = ["nico", "carbide"] as const;
type ApiName = (typeof API_NAMES)[number];
const PATH = /^\/v2\/org\/[^/]+\/(nico|carbide)(\/|$)/;

/** Returns the name by which the request calls the API in NICo's form; null for a request to another API. */
export function nicoNameOf(path: string): ApiName | null {
  const [, name] = PATH.exec(path) ?? [];
  return API_NAMES.find((one) => one === name) ?? null;
}

/** Serves the routes of Muster in NICo's form, for the organization whose name the hub's operator has set. */
export function registerNico(app: Hono<Env>, deps: ApiDependencies, guard: ApiGuard): void {
  const { nicoOrg } = deps;
  if (nicoOrg === undefined) return;
  for (const name of API_NAMES) {
    for (const endpoint of ENDPOINTS) {
      const path = endpoint.path.replace(/\{(\w+)\}/g, ":$1");
      app.on(endpoint.method, `/v2/org/:org/${name}${path}`, (c) => serve(c, endpoint, { deps, guard, nicoOrg }));
    }
    app.all(`/v2/org/:org/${name}/*`, (c) => {
      throw new ApiError("not_found", `Muster has no ${c.req.method} ${c.req.path}. docs/nico.md lists what it has.`);
    });
  }
}

async function serve(
  c: Context<Env>,
  endpoint: Endpoint,
  { deps, guard, nicoOrg }: { readonly deps: ApiDependencies; readonly guard: ApiGuard; readonly nicoOrg: string },
): Promise<Response> {
  const actor = await authorize(c, endpoint, deps, guard);
  const { org = "", ...params } = c.req.param() as Record<string, string>;
  if (org !== nicoOrg)
    throw new ApiError("forbidden", `This hub serves the organization ${nicoOrg}, not ${org.slice(0, 64)}.`);
  if (params["id"] !== undefined) idIn(params, z.uuid());
  await mustBeWithin(deps.db, actor, endpoint, { params, body: undefined });
  const query = c.req.query();
  const page = pageIn(query);
  const answer = await endpoint.answer({
    org,
    params,
    query,
    page,
    body: await bodyOf(c, endpoint),
    actor,
    address: c.get("address"),
    requestId: c.get("requestId"),
    approval: c.req.header(APPROVAL_HEADER),
    deps,
  });
  return toResponse(c, endpoint, answer, { number: page.number, size: page.size });
}

/** A DELETE request may have a body, and NICo's clients send some DELETE requests without a body. */
async function bodyOf(c: Context<Env>, { method }: Endpoint): Promise<unknown> {
  if (method === "GET" || (method === "DELETE" && (await c.req.text()) === "")) return undefined;
  return readJson(c);
}

function toResponse(
  c: Context<Env>,
  { status }: Endpoint,
  { body, total }: NicoAnswer,
  page: { readonly number: number; readonly size: number },
): Response {
  if (total !== undefined)
    c.header(
      "x-pagination",
      JSON.stringify({ pageNumber: page.number, pageSize: page.size, total, orderBy: "CREATED_ASC" }),
    );
  return status === 204 ? c.body(null, 204) : c.json(body as object, status);
}

/** Fields of Muster's own API that have another name in NICo's form, beyond the case of their letters. */
const NICO_NAMES: Readonly<Record<string, string>> = {
  key_ids: "sshKeyIds",
  node_id: "machineId",
  sku_id: "instanceTypeId",
};
const inNicoForm = (pointer: string): string =>
  pointer
    .slice(1)
    .split("/")
    .map((part) => NICO_NAMES[part] ?? part.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase()))
    .join("/");

/** Answers an error in NICo's form: `data` names the fields that are wrong. */
export function nicoProblem(c: Context, name: ApiName, problem: Problem, retryAfterSeconds?: number): Response {
  if (retryAfterSeconds !== undefined) c.header("retry-after", String(retryAfterSeconds));
  const data =
    problem.errors === undefined
      ? null
      : Object.fromEntries(problem.errors.map(({ pointer, message }) => [inNicoForm(pointer), message]));
  return c.json({ source: name, message: problem.detail, data }, problem.status as 400);
}
