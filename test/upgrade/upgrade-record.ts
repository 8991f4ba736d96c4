/** What a hub that died left behind, as `record.ts` wrote it and `upgrade.test.ts` loads it. */
export interface UpgradeRecord {
  /** The hub's version. */
  readonly version: string;
  /** When the hub had died, ISO 8601: nothing in the record happened later. */
  readonly recordedAt: string;
  /** Tags of the migrations that had been applied, in order. */
  readonly migrations: readonly string[];
  /** Rows by table, as PostgreSQL writes them as JSON; empty tables are left out. */
  readonly tables: Readonly<Record<string, readonly unknown[]>>;
  /** Stored first boots by path; a site's credentials are written anew by whoever loads the record. */
  readonly secrets: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** State file of the simulated region. */
  readonly region: Readonly<Record<string, unknown>>;
}
