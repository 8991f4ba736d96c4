/** What the API's description says beyond OpenAPI, so that a client such as the command line needs no table of its own. */

/** On a number in an answer: so many parts of the request were not done, although the request was answered well. */
export const countsFailures = { "x-counts-failures": true } as const;

/** By which name people know what an id stands for, and where it is looked up. */
interface NamedBy {
  /** The operation that lists such things. Its path and query may narrow the list by ids that are named themselves, e.g. profiles by their site. */
  readonly list: string;
  /** The field of an item that holds the name; the list has a parameter of this name that asks for it exactly. */
  readonly name: string;
  /** The field of an item that holds the id. */
  readonly id: string;
  /** Items that have given their name up, by a field and its values: they are not meant by it. `shown`: the list's parameter that shows them too. */
  readonly unless?: { readonly field: string; readonly values: readonly string[]; readonly shown?: string };
}

/** On an id in a request. The API itself takes the id alone. */
export const namedBy = (by: NamedBy) => ({ "x-named-by": by });
