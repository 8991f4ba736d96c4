import type { Db } from "../../db/tx.ts";
import type { Family } from "../counted/family.ts";
import type { SiteNames } from "./site-names.ts";

/**
 * Gauges that one SQL statement reads together. The SQL statement of a group of gauges groups its rows in the database, so the answer has as many
 * rows as the gauges have values, however large the fleet is.
 */
export interface GaugeGroup {
  readonly name: string;
  readonly families: readonly Family[];
  /** Reads the values of a group of gauges from the database, and replaces the shown values. */
  collect(db: Db, sites: SiteNames): Promise<void>;
  /** Removes the values of a group's gauges after a read from the database failed, because old values would look like present ones. */
  forget(): void;
}

interface Shown extends Family {
  show(rows: readonly []): void;
}

export const gaugeGroup = (
  group: Pick<GaugeGroup, "name" | "collect"> & { readonly families: readonly Shown[] },
): GaugeGroup => ({
  ...group,
  forget: () => {
    for (const family of group.families) family.show([]);
  },
});
