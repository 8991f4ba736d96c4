import { z } from "zod";
import { Problem } from "../../shared/api/errors.ts";
import { HUB_VERSION } from "../version.ts";
import type { Route } from "./route.ts";

type Schema = Record<string, unknown>;

const schemaOf = (schema: z.ZodType, io: "input" | "output"): Schema => {
  const { $schema: _dialect, ...json } = z.toJSONSchema(schema, {
    io,
    unrepresentable: "any",
    target: "draft-2020-12",
  });
  return json as Schema;
};

function parameters(route: Route): Schema[] {
  const from = (place: "path" | "query", schema: z.ZodType | undefined): Schema[] => {
    if (schema === undefined) return [];
    const object = schemaOf(schema, "input") as { properties?: Record<string, Schema>; required?: string[] };
    return Object.entries(object.properties ?? {}).map(([name, property]) => ({
      name,
      in: place,
      required: place === "path" || (object.required ?? []).includes(name),
      schema: property,
    }));
  };
  const header = (name: string, description: string, required: boolean): Schema => ({
    name,
    in: "header",
    required,
    description,
    schema: { type: "string" },
  });
  return [
    ...from("path", route.params),
    ...from("query", route.query),
    ...(route.method === "POST" && route.permission === "write"
      ? [header("Idempotency-Key", "The same key and request give the same answer for a day.", false)]
      : []),
    ...(route.method === "PATCH" ? [header("If-Match", "ETag of the version that is changed.", true)] : []),
  ];
}

function operation(route: Route): Schema {
  const problem = {
    description: "A problem (RFC 9457)",
    content: { "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" } } },
  };
  return {
    operationId: route.operationId,
    summary: route.summary,
    tags: [route.tag],
    "x-permission": route.permission,
    security: route.permission === "public" ? [] : [{ bearer: [] }],
    parameters: parameters(route),
    ...(route.body === undefined
      ? {}
      : {
          requestBody: { required: true, content: { "application/json": { schema: schemaOf(route.body, "input") } } },
        }),
    responses: {
      [route.status]: {
        description: "OK",
        ...(route.status === 204
          ? {}
          : { content: { "application/json": { schema: schemaOf(route.response, "output") } } }),
      },
      default: problem,
    },
  };
}

/** OpenAPI 3.1, made from the routes themselves (decision P4): what is not registered is not described, and the other way round. */
export function openApiDocument(routes: readonly Route[]): Schema {
  const paths: Record<string, Schema> = {};
  for (const route of routes)
    paths[route.path] = { ...paths[route.path], [route.method.toLowerCase()]: operation(route) };
  return {
    openapi: "3.1.0",
    info: {
      title: "Muster hub",
      version: HUB_VERSION,
      description: "Brings bare-metal GPU hosts into service, keeps them there and takes them out again.",
    },
    paths,
    components: {
      schemas: { Problem: schemaOf(Problem, "output") },
      securitySchemes: { bearer: { type: "http", scheme: "bearer" } },
    },
  };
}
