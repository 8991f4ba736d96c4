import { readFileSync } from "node:fs";
import { createConfig, lintFromString } from "@redocly/openapi-core";
import openapiTS, { astToString } from "openapi-typescript";
import ts from "typescript";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { NamedBy, operationsOf } from "../hub/cli/description.ts";
import { shippedOperations } from "../hub/cli/table/shipped.ts";
import { asyncApiDocument, eventTable } from "../hub/events/asyncapi.ts";
import { openApiDocument } from "../hub/http/openapi.ts";
import { ROUTES } from "../hub/http/routes/index.ts";
import { AgentFrame, HubFrame } from "../shared/protocol/frames.ts";

const COMMITTED = new URL("../docs/openapi.json", import.meta.url);

describe("the description of the events", () => {
  it("matches the committed docs/asyncapi.json and the table of docs/events.md; `npm run asyncapi` writes both", () => {
    const read = (name: string) => readFileSync(new URL(`../docs/${name}`, import.meta.url), "utf8");
    expect(JSON.parse(read("asyncapi.json"))).toEqual(JSON.parse(JSON.stringify(asyncApiDocument())));
    expect(read("events.md")).toContain(eventTable());
  });
});

describe("the description of the agent's protocol", () => {
  const { components, channels } = asyncApiDocument() as {
    components: { messages: Record<string, { name: string; summary?: string; payload: Record<string, unknown> }> };
    channels: { agent: { messages: object } };
  };

  it("has a message with a meaning for each frame, and the schema by which hub and agent check the frame", () => {
    const frames = Object.entries(components.messages).filter(([name]) => name.startsWith("agent-"));
    const types = [...AgentFrame.options, ...HubFrame.options].map(({ shape }) => shape.type.value);
    expect(frames.map(([, { name }]) => name).toSorted()).toEqual(types.toSorted());
    expect(Object.keys(channels.agent.messages).toSorted()).toEqual(frames.map(([name]) => name).toSorted());
    for (const [, { name, summary, payload }] of frames) {
      expect(summary, name).toBeTruthy();
      expect(payload, name).toMatchObject({ type: "object", properties: { type: { const: name } } });
    }
  });
});

/** Returns the errors of the compiler for one file of declarations, with the settings that users call strict. */
function strictErrors(text: string): string[] {
  const name = "/client.d.ts";
  const options: ts.CompilerOptions = {
    strict: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    noEmit: true,
    types: [],
    target: ts.ScriptTarget.ES2022,
  };
  const host = ts.createCompilerHost(options);
  const { getSourceFile } = host;
  host.getSourceFile = (file, ...rest) =>
    file === name ? ts.createSourceFile(file, text, ts.ScriptTarget.ES2022) : getSourceFile(file, ...rest);
  const program = ts.createProgram([name], options, host);
  return ts.getPreEmitDiagnostics(program).map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, " "));
}

describe("the description of the API", () => {
  it("gives a client whose types compile under strict settings", async () => {
    const client = astToString(await openapiTS(COMMITTED));
    expect(client).toContain("createNodeTask");
    expect(strictErrors(client)).toEqual([]);
    expect(
      strictErrors(client.replaceAll("Json: unknown;", 'Json: string | components["schemas"]["Json"][];')),
    ).toEqual(["'Json' is referenced directly or indirectly in its own type annotation."]);
  });

  const document = openApiDocument(ROUTES);

  it("matches the committed docs/openapi.json; `npm run openapi` writes it", () => {
    expect(JSON.parse(readFileSync(COMMITTED, "utf8"))).toEqual(JSON.parse(JSON.stringify(document)));
  });

  it("matches the table of operations that ships with the command line; `npm run openapi` writes it", () => {
    const described = operationsOf(JSON.parse(JSON.stringify(document)));
    expect(described.length).toBeGreaterThan(100);
    expect(shippedOperations()).toEqual(JSON.parse(JSON.stringify(described)));
  });

  it("names each operation once, with a summary, an answer's schema and a permission", () => {
    const ids = ROUTES.map((route) => route.operationId);
    expect(new Set(ids).size).toBe(ids.length);
    for (const path of Object.values(document["paths"] as Record<string, Record<string, Record<string, unknown>>>)) {
      for (const operation of Object.values(path)) {
        expect(operation).toMatchObject({
          operationId: expect.any(String),
          summary: expect.any(String),
          "x-permission": expect.stringMatching(/^(public|read|write)$/),
        });
        expect(Object.keys(operation["responses"] as object)).toContain("default");
      }
    }
  });

  it("has no error and no unexplained warning by the recommended rules of Redocly", async () => {
    const config = await createConfig({ extends: ["recommended"] });
    const problems = await lintFromString({ source: JSON.stringify(document), absoluteRef: "/openapi.json", config });
    // Muster has no licence yet (CONTRIBUTING.md), so its description cannot name one.
    const unexplained = problems.filter(({ ruleId }) => ruleId !== "info-license");
    expect(unexplained.map(({ ruleId, message, location }) => [ruleId, message, location[0]?.pointer])).toEqual([]);
    expect(problems.map(({ ruleId }) => ruleId)).toEqual(["info-license"]);
    const broken = { ...document, servers: [] };
    const found = await lintFromString({ source: JSON.stringify(broken), absoluteRef: "/openapi.json", config });
    expect(found.map(({ ruleId }) => ruleId)).toContain("no-empty-servers");
  });

  it("describes the errors of each route: the token's budget where a token is needed, versions where one is changed", () => {
    const all = Object.values(document["paths"] as Record<string, Record<string, Record<string, unknown>>>);
    const { responses } = document["components"] as { responses: Record<string, Record<string, unknown>> };
    for (const [method, operation] of all.flatMap((path) => Object.entries(path))) {
      const refusals = Object.keys(operation["responses"] as object);
      expect(refusals.includes("429"), String(operation["operationId"])).toBe(operation["x-permission"] !== "public");
      expect(refusals.includes("412")).toBe(method === "patch");
      expect(refusals).toContain("400");
    }
    expect(responses["Problem429"]).toMatchObject({
      headers: { "Retry-After": { $ref: "#/components/headers/RetryAfter" } },
      description: expect.stringContaining("rate_limited"),
    });
  });

  it("describes each place of a path as a required parameter", () => {
    for (const [path, operations] of Object.entries(
      document["paths"] as Record<
        string,
        Record<string, { parameters: { name: string; in: string; required: boolean }[] }>
      >,
    )) {
      const places = [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]);
      for (const operation of Object.values(operations))
        expect(
          operation.parameters
            .filter((parameter) => parameter.in === "path" && parameter.required)
            .map((parameter) => parameter.name),
        ).toEqual(places);
    }
  });

  it("refers only to existing schemas, and repeats none", () => {
    const text = JSON.stringify(document);
    const schemas = (document["components"] as { schemas: Record<string, object> }).schemas;
    const { headers, responses } = document["components"] as Record<string, object>;
    const referred = new Set([...text.matchAll(/"\$ref":"([^"]+)"/g)].map((match) => match[1]));
    const named = Object.entries({ schemas, headers, responses }).flatMap(([kind, all]) =>
      Object.keys(all ?? {}).map((name) => `#/components/${kind}/${name}`),
    );
    expect([...referred].sort()).toEqual(named.sort());
    expect(text).not.toContain("$defs");
  });

  it("describes each named schema in itself, without a reference", () => {
    const schemas = (document["components"] as { schemas: Record<string, Record<string, unknown>> }).schemas;
    for (const [name, schema] of Object.entries(schemas)) {
      expect(schema["$ref"], name).toBeUndefined();
      if (name === "Json") {
        expect(schema, "any value").toEqual({ description: "Any JSON value" });
        continue;
      }
      expect(Object.keys(schema), name).toEqual(
        expect.arrayContaining([expect.stringMatching(/^(type|anyOf|oneOf)$/)]),
      );
    }
    expect(schemas["OnboardingCreate"]).toMatchObject({
      type: "object",
      properties: { hostname: { type: "string" } },
      required: expect.arrayContaining(["hostname", "ipmi_ip"]),
      additionalProperties: false,
    });
  });

  it("names, for each id that can be given by name, a list that can be filtered by that name", () => {
    const said: unknown[] = [];
    JSON.parse(JSON.stringify(document), (key, value) => {
      if (key === "x-named-by") said.push(value);
      return value;
    });
    expect(said.length).toBeGreaterThan(20);
    for (const text of new Set(said.map((one) => JSON.stringify(one)))) {
      const by = NamedBy.parse(JSON.parse(text));
      const list = ROUTES.find(({ operationId }) => operationId === by.list);
      const [query, item] = [list?.query, list?.response].map((schema) =>
        JSON.stringify(schema === undefined ? {} : z.toJSONSchema(schema, { io: "input", unrepresentable: "any" })),
      );
      expect(query, text).toContain(`"${by.name}":`);
      for (const field of [by.name, by.id, by.unless?.field ?? by.id]) expect(item, text).toContain(`"${field}":`);
      for (const value of by.unless?.values ?? []) expect(item, text).toContain(`"${value}"`);
    }
  });
});
