import { z } from "zod";
import type { Tx } from "../db/tx.ts";
import type { HubFacts } from "./facts.ts";

/** Of a list more is there than is shown. */
export const LeftOut = z.strictObject({ list: z.string(), shown: z.int(), of: z.int() });
export type LeftOut = z.output<typeof LeftOut>;

export interface Reading<T> {
  readonly data: T;
  readonly leftOut?: readonly LeftOut[];
}

interface About<S extends z.ZodType> {
  readonly name: string;
  /** For the API's description. */
  readonly about: string;
  /** All that leaves the hub: a member that is not described here makes the section fail. */
  readonly data: S;
}

/** Read in memory, so it is there whatever is away. */
interface HubSection<S extends z.ZodType> extends About<S> {
  read(facts: HubFacts): Reading<z.input<S>> | Promise<Reading<z.input<S>>>;
}

/** Read in one read-only transaction, by a number of statements and rows that no fleet raises. */
interface DatabaseSection<S extends z.ZodType> extends About<S> {
  read(tx: Tx): Promise<Reading<z.input<S>>>;
}

/** One part of what is handed on, as it is listed; its types were checked where it was defined. */
export type Section =
  | ({ readonly of: "hub" } & HubSection<z.ZodType>)
  | ({ readonly of: "database" } & DatabaseSection<z.ZodType>);

export const hubSection = <S extends z.ZodType>(section: HubSection<S>): Section =>
  ({ ...section, of: "hub" }) as unknown as Section;

export const databaseSection = <S extends z.ZodType>(section: DatabaseSection<S>): Section =>
  ({ ...section, of: "database" }) as unknown as Section;
