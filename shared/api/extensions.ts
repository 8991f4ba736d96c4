/**
 * Muster adds fields of its own, called extensions, to its OpenAPI document. Because clients such as the command line read the OpenAPI extensions,
 * they need no tables of their own about the API.
 */

/** Marks a number in an API answer that counts how many parts of a request failed although the request itself succeeded. */
export const countsFailures = { "x-counts-failures": true } as const;

/** How a client finds the id of an object whose name it knows. */
interface NamedBy {
  /**
   * The API operation whose list a client searches for an object with a known name. The id of another object may narrow the list in which a client
   * searches for a name: with a site's id, the API lists only the profiles of the site.
   */
  readonly list: string;
  /**
   * The name of the field in which an object, for example a site, has its own name. An API operation that lists objects has a query parameter with
   * the same name as the objects' name field, which selects objects by their name.
   */
  readonly name: string;
  /** The name of the field in which an object, for example a site, has its id. */
  readonly id: string;
  /**
   * An object gives up its name when the object's field `field` has one of the values `values`, for example when a node is deleted. Another object
   * may then have the name. `shown` is the name of the query parameter with which a list operation also lists objects that have given up their names.
   */
  readonly unless?: { readonly field: string; readonly values: readonly string[]; readonly shown?: string };
}

/**
 * Marks an id in an API request that a client such as the command line may replace by the object's name. The API itself accepts only the object's id,
 * so the client looks up the id by the object's name.
 */
export const namedBy = (by: NamedBy) => ({ "x-named-by": by });
