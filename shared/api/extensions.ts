/** Muster's additions to OpenAPI, so that a client such as the command line needs no table of its own. */

/** Marks a number in an answer that counts parts of the request that were not done, although the request as a whole succeeded. */
export const countsFailures = { "x-counts-failures": true } as const;

/** The name that people use for an object instead of its id, and how to look it up. */
interface NamedBy {
  /** The operation that lists such objects. Its path and query may narrow the list by ids that have names themselves, e.g. profiles by their site. */
  readonly list: string;
  /** The field of an item that holds the name; the list has a parameter of this name that asks for it exactly. */
  readonly name: string;
  /** The field of an item that holds the id. */
  readonly id: string;
  /** Items that no longer use their name, by a field and its values: the name does not mean them. `shown`: the list's parameter that includes them. */
  readonly unless?: { readonly field: string; readonly values: readonly string[]; readonly shown?: string };
}

/** Marks an id in a request. The API itself accepts only the id. */
export const namedBy = (by: NamedBy) => ({ "x-named-by": by });
