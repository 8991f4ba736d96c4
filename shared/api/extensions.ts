/**
 * Muster adds fields of its own, called extensions, to its OpenAPI document. Because clients such as the command line read the OpenAPI extensions,
 * they need no tables of their own about the API.
 */

/** Marks a number in an API answer that counts how many parts of a request failed although the request itself succeeded. */
export const countsFailures = { "x-counts-failures": true } as const;

/** How a client finds the id of an object whose name it knows. */
interface NamedBy {
  /**
   * The API operation that lists the objects among which a client searches for a name. The id of another object may narrow the list: with a site's
   * id, the API lists only the profiles of the site.
   */
  readonly list: string;
  /**
   * The name of the field that contains a listed object's name. Every route that lists such objects has a query parameter of this name, which selects
   * objects by their name.
   */
  readonly name: string;
  /** The name of the field that contains a listed object's id. */
  readonly id: string;
  /**
   * An object gives up its name when the field `field` of the object has one of the values `values`, for example when a node is deleted. Another
   * object may then have the name. `shown` is the query parameter with which the list operation also lists objects that have given up their names.
   */
  readonly unless?: { readonly field: string; readonly values: readonly string[]; readonly shown?: string };
}

/**
 * Marks an id in an API request that a client such as the command line may replace by the object's name. The API itself accepts only the object's id,
 * so the client looks up the id of the given name.
 */
export const namedBy = (by: NamedBy) => ({ "x-named-by": by });
