import { z } from "zod";
import { Allocation, AllocationCreate, AllocationDetail } from "../../shared/api/allocations.ts";
import { APPROVAL_HEADER } from "../../shared/api/approvals.ts";
import {
  Batch,
  BatchDetail,
  BatchVerbResult,
  DecommissionBatchCreate,
  DecommissionBatchCreated,
} from "../../shared/api/batches.ts";
import { Problem } from "../../shared/api/errors.ts";
import { NodeDetail, NodeSummary } from "../../shared/api/nodes.ts";
import {
  BatchCreate,
  BatchCreated,
  Onboarding,
  OnboardingCreate,
  OnboardingCreated,
  OnboardingDetail,
} from "../../shared/api/onboardings.ts";
import { Profile, ProfileCreate, ProfilePatch } from "../../shared/api/profiles.ts";
import {
  CredentialWarning,
  PowerOverride,
  PowerOverrideCreate,
  PowerOverridePatch,
  RoceAssignment,
  RoceAssignmentUpsert,
  RoceAssignmentWritten,
  Site,
  SiteCreate,
  SiteCredentials,
  SitePatch,
  SiteProbe,
  Sku,
  SkuCreate,
  SkuPatch,
} from "../../shared/api/sites.ts";
import { TaskCreate } from "../../shared/api/tasks.ts";
import { Webhook, WebhookCreate, WebhookDelivery, WebhookPatch } from "../../shared/api/webhooks.ts";
import { Inventory } from "../../shared/inventory.ts";
import { Json } from "../../shared/json.ts";
import { VERSION } from "../../shared/version.ts";
import { LeftOut } from "../diagnostics/section.ts";
import { Diagnostics, SectionFailed } from "../diagnostics/take.ts";
import { EVERY_ANSWER, HEADERS, PROBLEMS, problemsOf, VERSIONED_ANSWER } from "./openapi-answers.ts";
import { type Route, takesIdempotencyKey } from "./route.ts";

type Schema = Record<string, unknown>;

/** The schemas that get a name of their own in the API description, so that generated clients have a type for each of them. */
const NAMED = {
  Problem,
  SiteCreate,
  SitePatch,
  Site,
  SiteCredentials,
  SiteProbe,
  ProfileCreate,
  ProfilePatch,
  Profile,
  SkuCreate,
  SkuPatch,
  Sku,
  RoceAssignmentUpsert,
  RoceAssignmentWritten,
  RoceAssignment,
  PowerOverrideCreate,
  PowerOverridePatch,
  PowerOverride,
  CredentialWarning,
  OnboardingCreate,
  OnboardingCreated,
  BatchCreate,
  BatchCreated,
  Batch,
  BatchDetail,
  BatchVerbResult,
  DecommissionBatchCreate,
  DecommissionBatchCreated,
  Onboarding,
  OnboardingDetail,
  AllocationCreate,
  Allocation,
  AllocationDetail,
  NodeSummary,
  NodeDetail,
  TaskCreate,
  WebhookCreate,
  WebhookPatch,
  Webhook,
  WebhookDelivery,
  Diagnostics,
  DiagnosticsLeftOut: LeftOut,
  DiagnosticsSectionFailed: SectionFailed,
  Inventory,
  Json,
} as const satisfies Record<string, z.ZodType>;

const names = z.registry<{ id: string }>();
for (const [id, schema] of Object.entries(NAMED)) names.add(schema, { id });

/** The metadata of a schema that the API description repeats, for requests and for answers (`shared/api/extensions.ts`). */
const SAID: Readonly<Record<"input" | "output", readonly string[]>> = {
  input: ["description", "x-named-by"],
  output: ["description", "x-counts-failures"],
};

/**
 * Schema names have a registry of their own, which zod uses instead of its global registry; `jsonSchemaOf` therefore adds the global registry's
 * metadata.
 */
const jsonSchemaOf = (schema: z.ZodType, io: "input" | "output"): Schema =>
  z.toJSONSchema(schema, {
    io,
    unrepresentable: "any",
    target: "draft-2020-12",
    metadata: names,
    override: ({ zodSchema, jsonSchema: json }) => {
      const about = Object.entries(z.globalRegistry.get(zodSchema) ?? {});
      Object.assign(json, Object.fromEntries(about.filter(([key]) => SAID[io].includes(key))));
    },
  }) as Schema;

/**
 * A named schema inside another schema becomes a reference. zod would repeat the definitions of named schemas in each schema. The API description has
 * all definitions in one place.
 */
function schemaOf(schema: z.ZodType, io: "input" | "output"): Schema {
  const name = names.get(schema)?.id;
  if (name !== undefined) return { $ref: `#/components/schemas/${name}` };
  const { $schema: _dialect, $defs: _named, ...json } = jsonSchemaOf(schema, io);
  return withReferences(json) as Schema;
}

function withReferences(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withReferences);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => [
      key,
      key === "$ref" && typeof member === "string"
        ? member.replace("#/$defs/", "#/components/schemas/")
        : withReferences(member),
    ]),
  );
}

/** A schema that allows any value. zod describes JSON by a schema that refers to itself, from which generators make a type that does not compile. */
const ANY_JSON = { description: "Any JSON value" };

/**
 * The API description shows a request as clients send it, with optional fields where a default exists. It shows an answer as the hub sends it. No
 * named schema serves both for requests and for answers.
 */
function components(): Schema {
  const sent = /(Create|Patch|Credentials|Upsert)$/;
  return Object.fromEntries(
    Object.entries(NAMED).map(([name, schema]) => {
      if (schema === Json) return [name, ANY_JSON];
      // For a named schema, zod puts the schema among the definitions and returns only a reference to the definition.
      const { $defs: named, ...top } = jsonSchemaOf(schema, sent.test(name) ? "input" : "output");
      const { $schema: _dialect, id: _id, ...json } = (named as Record<string, Schema> | undefined)?.[name] ?? top;
      return [name, withReferences(json)];
    }),
  );
}

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
    ...(takesIdempotencyKey(route)
      ? [header("Idempotency-Key", "The same key and request give the same answer for a day.", false)]
      : []),
    ...(route.secondPerson === undefined
      ? []
      : [header(APPROVAL_HEADER, "The id of the approval, if the request needs a second person and has one.", false)]),
    ...(route.method === "PATCH" ? [header("If-Match", "ETag of the version that is changed.", true)] : []),
  ];
}

/** The paths whose answers have an ETag: a route that changes a resource takes the ETag of the route that reads it. */
const versionedPaths = (routes: readonly Route[]): ReadonlySet<string> =>
  new Set(routes.filter(({ method }) => method === "PATCH").map(({ path }) => path));

/** A further media type of a body has no schema, because its shape is that of another specification. */
const bodyContent = ({ media }: Route, body: z.ZodType): Schema => ({
  "application/json": { schema: schemaOf(media?.shown ?? body, "input") },
  ...Object.fromEntries((media?.types ?? []).map((type) => [type, { schema: ANY_JSON }])),
});

function operation(route: Route, versioned: ReadonlySet<string>): Schema {
  return {
    operationId: route.operationId,
    summary: route.summary,
    tags: [route.tag],
    "x-permission": route.permission,
    "x-right": route.right,
    security: route.permission === "public" ? [] : [{ bearer: [] }],
    parameters: parameters(route),
    ...(route.body === undefined
      ? {}
      : {
          requestBody: { required: true, content: bodyContent(route, route.body) },
        }),
    responses: {
      [route.status]: {
        description: "OK",
        headers: versioned.has(route.path) && route.method !== "DELETE" ? VERSIONED_ANSWER : EVERY_ANSWER,
        ...(route.status === 204
          ? {}
          : {
              content: {
                [route.stream === undefined ? (route.produces ?? "application/json") : "text/event-stream"]: {
                  schema: schemaOf(route.response, "output"),
                },
              },
            }),
      },
      ...problemsOf(route),
    },
  };
}

/** Generates the API description in OpenAPI 3.1 from the given routes (decision P4). */
export function openApiDocument(routes: readonly Route[]): Schema {
  const paths: Record<string, Schema> = {};
  const versioned = versionedPaths(routes);
  for (const route of routes)
    paths[route.path] = { ...paths[route.path], [route.method.toLowerCase()]: operation(route, versioned) };
  return {
    openapi: "3.1.0",
    info: {
      title: "Muster hub",
      version: VERSION,
      description: "Brings bare-metal GPU hosts into service, keeps them there and takes them out again.",
    },
    servers: [{ url: "/", description: "The hub that serves this description" }],
    paths,
    components: {
      schemas: components(),
      headers: HEADERS,
      responses: PROBLEMS,
      securitySchemes: { bearer: { type: "http", scheme: "bearer" } },
    },
  };
}
