/**
 * Returns all values of a closed set of the API, in the order in which the console shows them. The call does not compile if `values` lacks a value of
 * the API's set, or has a value that is not in the set, so a list of the console cannot lag behind the API.
 */
export const everyValue = <Value extends string>(values: Readonly<Record<Value, true>>): readonly Value[] =>
  Object.keys(values) as Value[];
