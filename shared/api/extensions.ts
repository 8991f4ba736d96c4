/** Muster's extensions of OpenAPI. Clients such as the command line read these extensions and need no table of their own. */

/** Marks a number in an answer that counts the failed parts of a request that succeeded as a whole. */
export const countsFailures = { "x-counts-failures": true } as const;

/** How to find an object by its name instead of its id. */
interface NamedBy {
  /** The operation that lists the objects. Ids of other objects may narrow the list, for example a list of profiles by the site. */
  readonly list: string;
  /** The field of an item that holds the name. The list has a parameter of the same name for an exact search. */
  readonly name: string;
  /** The field of an item that holds the id. */
  readonly id: string;
  /** Items that no longer own their name, by a field and its values. `shown` is the list's parameter that includes these items. */
  readonly unless?: { readonly field: string; readonly values: readonly string[]; readonly shown?: string };
}

/** Marks an id in a request that a client may look up by name. The API itself accepts only the id. */
export const namedBy = (by: NamedBy) => ({ "x-named-by": by });
