/**
 * Returns all values of an enumeration of the API, in the order in which the console shows them. The call does not compile if `values` lacks a value
 * of the enumeration, or has another value, so a list of the console always matches the API.
 */
export const everyValue = <Value extends string>(values: Readonly<Record<Value, true>>): readonly Value[] =>
  Object.keys(values) as Value[];
