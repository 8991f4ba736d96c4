import { z } from "zod";
import type { Tx } from "../db/tx.ts";
import type { HubFacts } from "./facts.ts";

/** The entry that says that a list has more rows than the diagnostics show. */
export const LeftOut = z.strictObject({ list: z.string(), shown: z.int(), of: z.int() });
export type LeftOut = z.output<typeof LeftOut>;

export interface Reading<T> {
  readonly data: T;
  readonly leftOut?: readonly LeftOut[];
}

interface About<S extends z.ZodType> {
  readonly name: string;
  /** The description of a section of the diagnostics in the API document. */
  readonly about: string;
  /**
   * The schema of all data of a section of the diagnostics. A field that the section's schema does not describe makes the section of the diagnostics
   * fail, so that no other data leaves the hub.
   */
  readonly data: S;
}

/** A section of the diagnostics that the hub reads from its memory, so that the section works without the database. */
interface HubSection<S extends z.ZodType> extends About<S> {
  read(facts: HubFacts): Reading<z.input<S>> | Promise<Reading<z.input<S>>>;
}

/**
 * A section of the diagnostics that the hub reads in one read-only transaction. The number of SQL statements for a section of the diagnostics, and
 * the number of rows that they read, do not grow with the number of nodes.
 */
interface DatabaseSection<S extends z.ZodType> extends About<S> {
  read(tx: Tx): Promise<Reading<z.input<S>>>;
}

/** A section of the diagnostics without its type parameters, because the compiler has checked the section's types at its definition. */
export type Section =
  | ({ readonly of: "hub" } & HubSection<z.ZodType>)
  | ({ readonly of: "database" } & DatabaseSection<z.ZodType>);

export const hubSection = <S extends z.ZodType>(section: HubSection<S>): Section =>
  ({ ...section, of: "hub" }) as unknown as Section;

export const databaseSection = <S extends z.ZodType>(section: DatabaseSection<S>): Section =>
  ({ ...section, of: "database" }) as unknown as Section;
