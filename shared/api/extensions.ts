/** Muster's extensions of its OpenAPI document. Clients such as the command line read the OpenAPI extensions, and need no table of their own. */

/** Marks a number in an API answer: how many parts of a request failed although the request itself succeeded. */
export const countsFailures = { "x-counts-failures": true } as const;

/** How a client finds an object by its name instead of its id. */
interface NamedBy {
  /**
   * The API operation that lists the objects among which the client searches. An id of another object may narrow the list: a site's id limits a list
   * of profiles to the site.
   */
  readonly list: string;
  /**
   * The name of the field that contains an object's name. A query parameter of the API operation `list` has the same name as the field that contains
   * an object's name. With the query parameter, the API operation `list` returns only objects with the given name.
   */
  readonly name: string;
  /** The field with the object's id in the items of a list. */
  readonly id: string;
  /**
   * If the field of a listed item has one of the values, the item no longer owns its name, and another object may have the name. The member `shown`
   * is the query parameter with which the list operation also lists items that no longer own their name.
   */
  readonly unless?: { readonly field: string; readonly values: readonly string[]; readonly shown?: string };
}

/** Marks an id in a request that a client may look up by name. For an id that a client may look up by name, the API itself accepts only the id. */
export const namedBy = (by: NamedBy) => ({ "x-named-by": by });
