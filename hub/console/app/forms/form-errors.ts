import type { FieldError } from "../api/hub-error.ts";

/** What is wrong with the fields of a form, by the name of the field. */
export type Errors<Values> = { readonly [Name in keyof Values]?: string | undefined };

/**
 * Returns the hub's complaints by the name of the field: the hub says `/nodes/3/hostname`, and the form shows it at the field `nodes`. If the hub's
 * complaint is about something inside a field, for example one node of a list, the form's message begins with its path, such as `3/hostname`.
 */
export function errorsByField(fields: readonly FieldError[]): Readonly<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const { pointer, message } of fields) {
    const [name = "", ...inside] = pointer.split("/").slice(1);
    const where = inside.length === 0 ? "" : `${inside.join("/")} `;
    found[name] = found[name] === undefined ? `${where}${message}` : `${found[name]}; ${where}${message}`;
  }
  return found;
}

/** Leaves out the fields whose error is undefined, so that a form without errors gives an empty object. */
export const complaints = <Values>(errors: Errors<Values>): Errors<Values> =>
  Object.fromEntries(Object.entries(errors).filter(([, error]) => error !== undefined)) as Errors<Values>;

export const hasComplaint = (errors: object): boolean => Object.values(errors).some((error) => error !== undefined);
