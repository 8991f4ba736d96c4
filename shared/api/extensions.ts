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
   * The name of the field that contains a listed object's name. A query parameter of the list has the name of the field, and selects objects by name.
   */
  readonly name: string;
  /** The name of the field that contains a listed object's id. */
  readonly id: string;
  /**
   * If the named field of a listed object has one of the values, the object has given up its name. Another object may then have the name. `shown` is
   * the query parameter with which the list operation also lists objects that have given up their names.
   */
  readonly unless?: { readonly field: string; readonly values: readonly string[]; readonly shown?: string };
}

/**
 * Marks an id in an API request that a client such as the command line may replace by the object's name. The API itself accepts only the id, so the
 * client looks the name up.
 */
export const namedBy = (by: NamedBy) => ({ "x-named-by": by });
