import { dashed } from "./dashed.ts";
import type { Field, NamedBy, Operation, Schema } from "./description.ts";

export const typesOf = (schema: Schema): string[] => [
  ...[schema.type ?? []].flat(),
  ...(schema.anyOf ?? []).flatMap(typesOf),
];

export const namedBy = (schema: Schema): NamedBy | undefined =>
  schema["x-named-by"] ?? (schema.anyOf ?? []).map(namedBy).find((by) => by !== undefined);

export const flagOf = (field: Pick<Field, "name">): string => dashed(field.name);

export function operationNamed(id: string, operations: readonly Operation[]): Operation {
  const operation = operations.find((one) => one.id === id);
  if (operation === undefined) throw new Error(`The API has no operation ${id}.`);
  return operation;
}

/** A verb's flag has the name of the API's field without the ending `_id`, because the flag takes the name of an object as well as its id. */
export const verbFlag = ({ name }: Pick<Field, "name">): string => dashed(name.replace(/_id$/, ""));
