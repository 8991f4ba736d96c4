import { z } from "zod";

/** A table or a sequence of numbers in the database, with its schema, such as `public.nodes`. */
const Name = z.string().regex(/^(public|drizzle)\.[a-z_0-9]{1,63}$/);
const Column = z.string().regex(/^[a-z_0-9]{1,63}$/);

/**
 * The file `manifest.json` of a backup. The manifest says which version of the database's schema the backup has, so that `restore` can first make
 * the same tables.
 */
export const Manifest = z.strictObject({
  format: z.literal(1),
  hub_version: z.string().max(100),
  /** The time, by the database's clock, of the snapshot that the backup contains. */
  taken_at: z.iso.datetime(),
  /** The numbers of the migrations that the database had, in their order. */
  migrations: z.array(z.int().positive()).min(1).max(10_000),
  tables: z.array(z.strictObject({ name: Name, rows: z.int().min(0), columns: z.array(Column).min(1) })).max(1_000),
  sequences: z
    .array(z.strictObject({ name: Name, last_value: z.string().regex(/^\d{1,19}$/), is_called: z.boolean() }))
    .max(1_000),
  /** The id of the secret store that belongs to the database. */
  store_id: z.uuid(),
  /**
   * The kind of the secret store: for `sealed_file`, the backup contains the sealed files of the secrets; for `vault`, the backup contains no
   * secrets.
   */
  secrets: z.enum(["sealed_file", "vault"]),
});
export type Manifest = z.output<typeof Manifest>;

/** The file of a table's rows in the backup. */
export const fileOfTable = (name: string): string => `tables/${name}.copy.gz`;

export type Fit = { readonly fits: true } | { readonly fits: false; readonly why: "newer" | "another" };

/** Decides whether a hub that knows the database migrations `known` can restore a database that had the migrations `had`. */
export function fitOf(had: readonly number[], known: readonly number[]): Fit {
  if (had.every((when, index) => known[index] === when)) return { fits: true };
  const newest = known.at(-1) ?? 0;
  const isLonger = known.every((when, index) => had[index] === when);
  return { fits: false, why: isLonger || had.some((when) => when > newest) ? "newer" : "another" };
}
