import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { z } from "zod";
import { ROUTES } from "./routes/index.ts";
import { nodeVerbs } from "./routes/node-operations.ts";

const APPROVABLE = ROUTES.filter(({ secondPerson }) => secondPerson !== undefined);

/** The names of all fields of a JSON schema, at every level. */
function namesIn(schema: unknown): string[] {
  if (typeof schema !== "object" || schema === null) return [];
  const properties = "properties" in schema ? Object.keys(schema.properties as object) : [];
  return [...properties, ...Object.values(schema).flatMap(namesIn)];
}
const fieldsOf = (body: z.ZodType): string[] => namesIn(z.toJSONSchema(body, { io: "input", unrepresentable: "any" }));

it("a second person may be needed by the routes that destroy data, end a host's service, or change a profile's rules", () => {
  expect(APPROVABLE.map(({ operationId }) => operationId).toSorted()).toEqual([
    "adoptMachines",
    "bindNodeMachine",
    "cleanNodeStorage",
    "createDecommissionBatch",
    "createMaasSiteProfile",
    "createOnboarding",
    "createOnboardingBatch",
    "decommissionNode",
    "forceDecommission",
    "releaseNode",
    "removeNode",
    "restartCleanOnboarding",
    "unbindNodeMachine",
    "updateMaasSite",
    "updateMaasSitePolicy",
    "updateMaasSiteProfile",
  ]);
});

it("an approval of a request with a filter, or of the default profile of a site, is for the objects that were found", () => {
  const finding = APPROVABLE.filter(({ fixes }) => fixes !== undefined).map(({ operationId }) => operationId);
  expect(finding.toSorted()).toEqual([
    "adoptMachines",
    "createDecommissionBatch",
    "updateMaasSite",
    "updateMaasSitePolicy",
  ]);
  const filtering = APPROVABLE.filter(({ body }) => body !== undefined && fieldsOf(body).includes("filter"));
  expect(finding).toEqual(expect.arrayContaining(filtering.map(({ operationId }) => operationId)));
  expect(filtering).not.toEqual([]);
});

it("no route that may need a second person takes a secret, because the hub stores and shows the request", () => {
  const fields = APPROVABLE.flatMap(({ body }) => (body === undefined ? [] : fieldsOf(body)));
  expect(fields).toContain("site_bootstrap_bundle_ref");
  const secret = fields.filter((name) => /pass|secret|token|key|credential|login/.test(name));
  expect([...new Set(secret)]).toEqual(["enrollment_token_ttl_seconds"]);
  expect(APPROVABLE.filter(({ answersSecret }) => answersSecret === true)).toEqual([]);
});

it("no verb for many nodes at once needs a second person, because `applyToNodes` asks nobody", () => {
  expect(Object.values(nodeVerbs).filter(({ secondPerson }) => secondPerson !== undefined)).toEqual([]);
});

const Versioned = z.object({
  paths: z.record(z.string(), z.record(z.string(), z.object({ parameters: z.array(z.object({ name: z.string() })) }))),
});
const textOf = (file: string): string => readFileSync(new URL(file, import.meta.url), "utf8");

it("the console carries out every approved request whose operation is POST and takes no If-Match", () => {
  const { paths } = Versioned.parse(JSON.parse(textOf("../../docs/openapi.json")));
  const posts = APPROVABLE.filter(({ method }) => method === "POST");
  expect(posts.length).toBeGreaterThan(5);
  const takesVersion = (path: string) => paths[path]?.["post"]?.parameters.some(({ name }) => name === "If-Match");
  const [, table = ""] = /const PATHS[^{]*\{([\s\S]*?)\n\};/.exec(textOf("../console/app/verbs/carry-out.ts")) ?? [];
  expect(Object.fromEntries([...table.matchAll(/(\w+): "([^"]+)"/g)].map(([, id, path]) => [id, path]))).toEqual(
    Object.fromEntries(posts.filter(({ path }) => !takesVersion(path)).map((route) => [route.operationId, route.path])),
  );
});
