import { z } from "zod";
import { dashed } from "./dashed.ts";

export const NamedBy = z.object({
  list: z.string(),
  name: z.string(),
  id: z.string(),
  unless: z.object({ field: z.string(), values: z.array(z.string()), shown: z.string().optional() }).optional(),
});
/**
 * The API list in which the command line looks for an object's name, for a parameter that takes an id or a name. `name` and `id` are the fields of a
 * list item that hold the object's name and id. `unless` names a field, and the values of this field that mean that a list item no longer owns its
 * name, as for a deleted node.
 */
export type NamedBy = z.output<typeof NamedBy>;
const Schema = z.object({
  $ref: z.string().optional(),
  type: z.union([z.string(), z.array(z.string())]).optional(),
  enum: z.array(z.unknown()).optional(),
  const: z.unknown().optional(),
  default: z.unknown().optional(),
  description: z.string().optional(),
  required: z.array(z.string()).optional(),
  "x-counts-failures": z.boolean().optional(),
  "x-named-by": NamedBy.optional(),
  get anyOf() {
    return z.array(Schema).optional();
  },
  get oneOf() {
    return z.array(Schema).optional();
  },
  get items() {
    return Schema.optional();
  },
  get properties() {
    return z.record(z.string(), Schema).optional();
  },
});
export type Schema = z.output<typeof Schema>;

const Parameter = z.object({
  name: z.string(),
  in: z.enum(["path", "query", "header", "cookie"]),
  required: z.boolean().optional(),
  schema: Schema.optional(),
});
const Content = z.record(z.string(), z.object({ schema: Schema.optional() }));
const Described = z.object({
  operationId: z.string(),
  summary: z.string(),
  tags: z.array(z.string()),
  parameters: z.array(Parameter).optional(),
  requestBody: z.object({ content: Content }).optional(),
  responses: z.record(z.string(), z.object({ content: Content.optional() })),
});
const METHODS = ["get", "post", "patch", "put", "delete"] as const;
const ApiDescription = z.object({
  paths: z.record(z.string(), z.partialRecord(z.enum(METHODS), Described)),
  components: z.object({ schemas: z.record(z.string(), Schema) }),
});

export interface Field {
  /** The field's name in the API, for example `site_id`. */
  readonly name: string;
  readonly required: boolean;
  readonly schema: Schema;
}

export interface BodyKind {
  readonly when: Field;
  readonly fields: readonly Field[];
}

/** One command of the program `muster`, which calls one operation of the API. */
export interface Operation {
  /** The operation's id in the API, for example `retryOnboarding`. */
  readonly id: string;
  /** The command's name, which is the operation's id with dashes, for example `retry-onboarding`. */
  readonly command: string;
  readonly summary: string;
  readonly group: string;
  readonly method: string;
  readonly path: string;
  /** The positional arguments of the command, in the order of the parameters in the path of the API operation. */
  readonly arguments: readonly Field[];
  readonly query: readonly Field[];
  /** True if a request for the operation must name a version of the resource in the header If-Match. */
  readonly conditional: boolean;
  /** True if the API operation may need the approval of a second person, which the header Muster-Approval names. */
  readonly approvable: boolean;
  /** True if the API operation accepts the header Idempotency-Key. */
  readonly repeatable: boolean;
  readonly body: readonly Field[] | null;
  /** The forms of a request body if the value of its field `when` decides which other fields the body has; empty for every other request body. */
  readonly kinds: readonly BodyKind[];
  /** The fields of the operation's answer that count failed parts of the request. */
  readonly failureCounts: readonly string[];
}

const answersOf = ({ responses }: z.output<typeof Described>): Schema[] =>
  Object.values(responses).flatMap(({ content }) => content?.["application/json"]?.schema ?? []);
const countsFailures = ({ name, schema }: Field): string[] => (schema["x-counts-failures"] === true ? [name] : []);

/**
 * The fields of a request body that has one of several forms, for example one for each task type. A command has the fields of all forms of its
 * request body as flags, and a flag is required only if every form requires its field. The hub checks which fields belong together.
 */
function fieldsOfAny(forms: readonly (readonly Field[])[]): Field[] {
  const names = [...new Set(forms.flatMap((form) => form.map(({ name }) => name)))];
  return names.map((name) => {
    const same = forms.map((form) => form.find((field) => field.name === name));
    const schemas = same.flatMap((field) => field?.schema ?? []);
    const values = schemas.flatMap((schema) => (typeof schema.const === "string" ? schema.const : []));
    const [first = {}] = schemas;
    return {
      name,
      required: same.every((field) => field?.required === true),
      schema: values.length < schemas.length ? withoutProperties(first) : { ...withoutConst(first), enum: values },
    };
  });
}

const withoutProperties = ({ properties: _properties, required: _required, ...rest }: Schema): Schema => rest;
const withoutConst = ({ const: _const, description: _ofOneForm, ...rest }: Schema): Schema => rest;

/**
 * Reads the operations of an API description. The program ships with the operations of the API of its own version (`table/operations.json`), and reads
 * the description of a hub only for a command that this table does not have.
 */
export function operationsOf(document: unknown): Operation[] {
  const { paths, components } = ApiDescription.parse(document);
  const resolve = (schema: Schema): Schema => {
    if (schema.$ref === undefined) return schema;
    const named = components.schemas[schema.$ref.split("/").at(-1) ?? ""];
    return named === undefined ? schema : resolve(named);
  };
  /** Resolves the references in a JSON schema for one level of its items and properties, because the help texts of flags show no more levels. */
  const described = (schema: Schema): Schema => {
    const { items, properties, ...rest } = resolve(schema);
    const inner = Object.entries(properties ?? {}).map(([name, one]) => [name, resolve(one)] as const);
    return {
      ...rest,
      ...(items === undefined ? {} : { items: resolve(items) }),
      ...(properties === undefined ? {} : { properties: Object.fromEntries(inner) }),
    };
  };
  const fieldsOf = (schema: Schema): Field[] => {
    const { oneOf, properties, required } = resolve(schema);
    if (oneOf !== undefined) return fieldsOfAny(oneOf.map(fieldsOf));
    return Object.entries(properties ?? {}).map(([name, one]) => ({
      name,
      required: required?.includes(name) === true,
      schema: described(one),
    }));
  };
  /** If a request body has one of several forms, the field that is a constant in each form decides which form the body has. */
  const kindsOf = (schema: Schema): BodyKind[] =>
    (resolve(schema).oneOf ?? []).map(fieldsOf).flatMap((fields) => {
      const when = fields.find((field) => field.schema.const !== undefined);
      return when === undefined ? [] : [{ when, fields: fields.filter((field) => field !== when) }];
    });
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, one]) => {
      const body = one.requestBody?.content["application/json"]?.schema;
      const parameters = (place: "path" | "query"): Field[] =>
        (one.parameters ?? []).flatMap(({ in: where, name, required, schema }) =>
          where === place ? [{ name, required: required === true, schema: resolve(schema ?? {}) }] : [],
        );
      const takesHeader = (header: string): boolean =>
        (one.parameters ?? []).some(({ in: place, name }) => place === "header" && name === header);
      const places = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name);
      return {
        id: one.operationId,
        command: dashed(one.operationId),
        summary: one.summary,
        group: one.tags[0] ?? "other",
        method: method.toUpperCase(),
        path,
        arguments: parameters("path").sort((a, b) => places.indexOf(a.name) - places.indexOf(b.name)),
        query: parameters("query"),
        conditional: takesHeader("If-Match"),
        approvable: takesHeader("Muster-Approval"),
        repeatable: takesHeader("Idempotency-Key"),
        body: body === undefined ? null : fieldsOf(body),
        kinds: body === undefined ? [] : kindsOf(body),
        failureCounts: answersOf(one).flatMap(fieldsOf).flatMap(countsFailures),
      };
    }),
  );
}
