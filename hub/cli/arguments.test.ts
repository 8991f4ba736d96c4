import { describe, expect, it } from "vitest";
import document from "../../docs/openapi.json" with { type: "json" };
import { COMMON_FLAGS, readArguments } from "./arguments.ts";
import { type Operation, operationsOf } from "./description.ts";
import { UsageError } from "./errors.ts";
import { flagOf } from "./operation.ts";

const OPERATIONS = operationsOf(document);

describe("the flags of every command", () => {
  it.each(OPERATIONS.map((operation) => [operation.command, operation] as const))(
    "belong to no field of %s",
    (_, one) => {
      const flags = [...one.query, ...(one.body ?? [])].map(flagOf);
      expect(flags.filter((flag) => flag in COMMON_FLAGS)).toEqual([]);
      expect(new Set(flags).size, "two fields with one flag").toBe(flags.length);
    },
  );

  it("are not taken for a field if a hub of another version has a field of that name", () => {
    const [some] = OPERATIONS.filter(({ command }) => command === "update-webhook");
    const field = { name: "hub", required: false, schema: { type: "string" } };
    const operation = { ...some, body: [...(some?.body ?? []), field] } as Operation;
    expect(() => readArguments(operation, ["id", "--hub", "https://elsewhere.example"])).toThrow(
      new UsageError(
        "--hub is a flag of every command, and a field of this one; give the field by --json. See: muster help update-webhook",
      ),
    );
    expect(readArguments(operation, ["id", "--json", "{}"]).words).toEqual(["id"]);
  });
});
