/** The state that a dead hub left. `record.ts` writes the state and `upgrade.test.ts` loads the state. */
export interface UpgradeRecord {
  /** The version of the hub that wrote the record. */
  readonly version: string;
  /** When the hub had died, in ISO 8601. Nothing in the record happened later. */
  readonly recordedAt: string;
  /** The names of the migrations that had been applied, in order. */
  readonly migrations: readonly string[];
  /** Rows by table, in PostgreSQL's JSON. Empty tables are left out. */
  readonly tables: Readonly<Record<string, readonly unknown[]>>;
  /** Stored first boots by path. The test that loads the record writes a site's credentials anew. */
  readonly secrets: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** The state file of the simulated region. */
  readonly region: Readonly<Record<string, unknown>>;
}
