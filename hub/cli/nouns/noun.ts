export interface Column {
  readonly head: string;
  /** The field of an item, where `a.b` means field b in the record a. */
  readonly field: string;
  /** True for a column that only `-o wide` shows. */
  readonly wide?: true;
  /** `age` is a time, which a terminal shows as the time since then. `site` is the id of a site, which the table shows as the site's name. */
  readonly as?: "age" | "site";
}

/** An object to which the objects of a noun belong, for example the site of a profile. */
export interface Parent {
  /** The flag, and the parameter of the noun's path, that names the parent. */
  readonly flag: "site" | "node" | "webhook";
  /** The API operation that lists all parents, which `get` uses if the operator names no parent; null if there may be too many parents. */
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
  /** The operations that read one object. If no API operation reads a single object of the noun, the command finds the object in the noun's list. */
  readonly reads: readonly string[];
  readonly parent?: Parent;
  /** The field of an item that holds its id, and the field that holds the name by which people know it. */
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
