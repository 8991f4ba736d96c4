/**
 * The query of an address is the state of a screen: its filter, order and columns. A screen names its fields once, and gets typed values. A value that
 * does not fit its field is left out, because a person may have typed the address.
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

/** Several values whose names the console does not know beforehand, for example of SKUs. */
export const several = (most = 20): Field<readonly string[]> => ({
  parse: (given) => listOrNone([...new Set(given.split(",").filter((value) => value !== ""))].slice(0, most)),
});

const listOrNone = <Value>(values: readonly Value[]): readonly Value[] | undefined =>
  values.length === 0 ? undefined : values;

type Fields = Readonly<Record<string, Field<unknown>>>;
export type SearchOf<F extends Fields> = { readonly [K in keyof F]?: F[K] extends Field<infer Value> ? Value : never };

/** Makes the parser of a screen's query from its fields. */
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

/** Links within the console give values, and addresses give text. Both take the same way, so both are checked. */
const asText = (given: unknown): string => (Array.isArray(given) ? given.join(",") : String(given));

/** Writes the query of an address. Commas, colons and slashes stay readable, because people read and share addresses. */
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
