/** Muster's extensions of its OpenAPI document. Clients such as the command line read these OpenAPI extensions and need no table of their own. */

/** Marks a number in an answer that counts the failed parts of a request that succeeded as a whole. */
export const countsFailures = { "x-counts-failures": true } as const;

/** How a client finds an object by its name instead of its id. */
interface NamedBy {
  /**
   * The API operation that lists the objects among which the client searches. An id of another object may narrow the list: a site's id limits a list
   * of profiles to the site.
   */
  readonly list: string;
  /**
   * The field of a list's item that holds the object's name. The list operation has a parameter with this field's name, which selects the objects of
   * exactly one name.
   */
  readonly name: string;
  /** The field of a list's item that holds the object's id. */
  readonly id: string;
  /**
   * The field and the values by which an item of a list no longer owns its name, so that another object may have the name. `shown` is the parameter
   * with which the list operation also lists items that no longer own their name.
   */
  readonly unless?: { readonly field: string; readonly values: readonly string[]; readonly shown?: string };
}

/** Marks an id in a request that a client may look up by name. The API itself accepts only the object's id. */
export const namedBy = (by: NamedBy) => ({ "x-named-by": by });
