import { expect, it } from "vitest";
import { z } from "zod";
import { EnrollRequest, RenewRequest } from "../../shared/api/enroll.ts";
import { INT4_MAX } from "../../shared/int4.ts";
import { AgentFrame } from "../../shared/protocol/frames.ts";
import { ROUTES } from "./routes/index.ts";

interface Shape {
  readonly type?: string;
  readonly maximum?: number;
  readonly exclusiveMaximum?: number;
  readonly minimum?: number;
}

function wholeNumbers(schema: unknown, path: string): { path: string; shape: Shape }[] {
  if (typeof schema !== "object" || schema === null) return [];
  const shape = schema as Shape;
  const own = shape.type === "integer" ? [{ path, shape }] : [];
  return [...own, ...Object.entries(schema).flatMap(([name, member]) => wholeNumbers(member, `${path}/${name}`))];
}

const inputs: [string, z.ZodType][] = [
  ...ROUTES.flatMap((route) =>
    [route.params, route.query, route.body].flatMap((schema): [string, z.ZodType][] =>
      schema === undefined ? [] : [[route.operationId, schema]],
    ),
  ),
  ["agent frame", AgentFrame],
  ["enroll", EnrollRequest],
  ["renew", RenewRequest],
];

it("accepts no whole number that does not fit into PostgreSQL's integer", () => {
  const found = inputs.flatMap(([name, schema]) =>
    wholeNumbers(z.toJSONSchema(schema, { io: "input", unrepresentable: "any" }), name),
  );
  expect(found.length).toBeGreaterThan(30);
  const unbounded = found.filter(
    ({ shape }) =>
      (shape.maximum ?? shape.exclusiveMaximum ?? Infinity) > INT4_MAX || (shape.minimum ?? -Infinity) < -INT4_MAX,
  );
  expect(unbounded.map(({ path }) => path)).toEqual([]);
});
