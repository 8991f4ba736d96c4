/**
 * The query part of a URL holds a screen's filter, order and columns. A screen declares the fields of its URL query once, and then gets typed values.
 * A value in a URL query that does not fit its field is ignored, because a person may have typed the URL.
 */
export interface Field<Value> {
  parse(text: string): Value | undefined;
}

export const text = (most = 200): Field<string> => ({
  parse: (given) => (given.trim() === "" || given.length > most ? undefined : given.trim()),
});

export const oneOf = <const Value extends string>(values: readonly Value[]): Field<Value> => ({
  parse: (given) => values.find((value) => value === given),
});

/** Several values, which commas separate. */
export const severalOf = <const Value extends string>(values: readonly Value[]): Field<readonly Value[]> => ({
  parse: (given) => listOrNone(values.filter((value) => given.split(",").includes(value))),
});

/** A URL field with several values that the console does not know beforehand, for example SKUs. */
export const several = (most = 20): Field<readonly string[]> => ({
  parse: (given) => listOrNone([...new Set(given.split(",").filter((value) => value !== ""))].slice(0, most)),
});

const listOrNone = <Value>(values: readonly Value[]): readonly Value[] | undefined =>
  values.length === 0 ? undefined : values;

type Fields = Readonly<Record<string, Field<unknown>>>;
export type SearchOf<F extends Fields> = { readonly [K in keyof F]?: F[K] extends Field<infer Value> ? Value : never };

/** Makes the parser of a screen's URL query from the screen's fields. */
export const searchOf =
  <F extends Fields>(fields: F) =>
  (raw: Readonly<Record<string, unknown>>): SearchOf<F> =>
    Object.fromEntries(
      Object.entries(fields).flatMap(([name, field]) => {
        const given = raw[name];
        const value = given === undefined || given === null ? undefined : field.parse(asText(given));
        return value === undefined ? [] : [[name, value]];
      }),
    ) as SearchOf<F>;

/**
 * A link within the console gives typed values, and a URL gives text. `searchOf` turns the values of links and of URLs into text and parses that
 * text, so that both are checked.
 */
const asText = (given: unknown): string => (Array.isArray(given) ? given.join(",") : String(given));

/** Writes the query part of a URL. In the written URL query, commas, colons and slashes stay unescaped, because people read and share URLs. */
export function writeSearch(search: Readonly<Record<string, unknown>>): string {
  const entries = Object.entries(search).flatMap(([name, value]) => {
    const written = value === undefined || value === null ? "" : asText(value);
    return written === "" ? [] : [[name, written] as [string, string]];
  });
  const query = new URLSearchParams(entries)
    .toString()
    .replaceAll("%2C", ",")
    .replaceAll("%3A", ":")
    .replaceAll("%2F", "/");
  return query === "" ? "" : `?${query}`;
}

export const readSearch = (query: string): Record<string, string> => Object.fromEntries(new URLSearchParams(query));
