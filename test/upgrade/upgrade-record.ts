import type { Outside } from "../properties/scenarios.ts";

/** An upgrade record: what a dead hub left in its database, its secret store and its simulated region. */
export interface UpgradeRecord {
  /** The version of the hub that wrote the record. */
  readonly version: string;
  /** When `record.ts` wrote the upgrade record, as a time in ISO 8601. */
  readonly recordedAt: string;
  readonly migrations: readonly string[];
  /** The rows of each database table that is not empty, in PostgreSQL's JSON. */
  readonly tables: Readonly<Record<string, readonly unknown[]>>;
  /**
   * The user data for the hosts' first boots, by its path in the secret store. The test that loads the upgrade record creates the site's credentials
   * anew.
   */
  readonly secrets: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** The content of the state file of the simulated MAAS region. */
  readonly region: Readonly<Record<string, unknown>>;
  /**
   * The requests that the simulated MAAS has counted when a workflow completes, by the id of the workflow. The record of version 0.1.0 has only
   * onboardings, and does not have `outside`.
   */
  readonly outside?: Readonly<Record<string, Outside>>;
}
