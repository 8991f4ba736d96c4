/** Muster's extensions of its OpenAPI document. Clients such as the command line read these OpenAPI extensions and need no table of their own. */

/** Marks a number in an answer that counts the failed parts of a request that succeeded as a whole. */
export const countsFailures = { "x-counts-failures": true } as const;

/** How a client finds an object by its name instead of its id. */
interface NamedBy {
  /** The API operation that lists the objects. Ids of other objects may narrow the list, for example a list of profiles by the site. */
  readonly list: string;
  /** The field of a list's item that holds the name. The list operation has a parameter of the same name for an exact search. */
  readonly name: string;
  /** The field of a list's item that holds the id. */
  readonly id: string;
  /**
   * Which items of the list no longer own their name, so that another object may have it: a field and its values. `shown` is the list operation's
   * parameter that includes the items that no longer own their name.
   */
  readonly unless?: { readonly field: string; readonly values: readonly string[]; readonly shown?: string };
}

/** Marks an id in a request that a client may look up by name. The API itself accepts only the object's id. */
export const namedBy = (by: NamedBy) => ({ "x-named-by": by });
