export interface Column {
  readonly head: string;
  /** The field of the listed object that a table column shows; `a.b` means field b in the record a. */
  readonly field: string;
  /** True for a table column that only the flag `-o wide` shows. */
  readonly wide?: true;
  /**
   * A column with `age` shows a time on a terminal as the time since then. A column with `site` shows the name of the site whose id the field
   * contains.
   */
  readonly as?: "age" | "site";
}

/** An object to which other objects belong, for example the site of a profile. */
export interface Parent {
  /** The command-line flag, and the parameter of the API path, that names the parent object. */
  readonly flag: "site" | "node" | "webhook";
  /**
   * The API operation that lists all parent objects, for example all sites, which `muster get` uses if the operator names no parent; null if there
   * may be too many of them.
   */
  readonly list: string | null;
}

/** A kind of objects that `get` lists and `describe` shows. */
export interface Noun {
  readonly plural: string;
  readonly singular: string;
  readonly short: readonly string[];
  readonly about: string;
  /** The operations of the API that list the objects. */
  readonly lists: readonly string[];
  /**
   * The operations that read one object. If no API operation reads a single object of this kind, the command searches the list of all objects of the
   * kind.
   */
  readonly reads: readonly string[];
  readonly parent?: Parent;
  /** The field of a listed object that holds its id, and the field that holds the name by which people know it. */
  readonly id: string;
  readonly label: string;
  readonly columns: readonly Column[];
  /** The types of events that say that an object may have changed. */
  readonly events: readonly string[];
}

export const col = (head: string, field: string): Column => ({ head, field });
export const wide = (head: string, field: string): Column => ({ head, field, wide: true });
export const age = (head: string, field: string): Column => ({ head, field, as: "age" });
export const SITE: Column = { head: "SITE", field: "site_id", as: "site" };
