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

/**
 * The plan of a task carries the task's input. The hub keeps an input as JSON and never in a column of type integer, so the numbers of Linux and
 * of GPUs in it, which have 32 bits without a sign, fit too.
 */
const TASK_INPUT = /^createNodeTask\/oneOf\/\d+\/properties\/input\//;
const most = (path: string) => (TASK_INPUT.test(path) ? 0xffff_ffff : INT4_MAX);

it("accepts no whole number that does not fit into PostgreSQL's integer", () => {
  const found = inputs.flatMap(([name, schema]) =>
    wholeNumbers(z.toJSONSchema(schema, { io: "input", unrepresentable: "any" }), name),
  );
  expect(found.length).toBeGreaterThan(30);
  expect(found.some(({ path }) => TASK_INPUT.test(path))).toBe(true);
  const unbounded = found.filter(
    ({ path, shape }) =>
      (shape.maximum ?? shape.exclusiveMaximum ?? Infinity) > most(path) || (shape.minimum ?? -Infinity) < -INT4_MAX,
  );
  expect(unbounded.map(({ path }) => path)).toEqual([]);
});
