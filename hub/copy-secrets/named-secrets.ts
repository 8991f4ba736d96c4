import { type AnyPgColumn, eq, isNotNull } from "../db/orm.ts";
import { readStatements } from "../db/queries/authority-statements.ts";
import { maasPowerCredentialOverrides, maasSites, nodes, webhooks } from "../db/schema/index.ts";
import type { Db } from "../db/tx.ts";
import { SECRET_PATHS } from "../secrets/port.ts";

export interface NamedSecret {
  readonly path: string;
  /** The database says that it is there; else it may be. */
  readonly needed: boolean;
}

type Kind = keyof typeof SECRET_PATHS;
type Find = (db: Db) => Promise<NamedSecret[]>;

const always =
  (path: string): Find =>
  async () => [{ path, needed: true }];

/** What was aborted signs nothing any more. */
const later =
  (pathOf: (generation: number) => string): Find =>
  async (db) => {
    const statements = (await readStatements(db)).map(({ statement }) => statement);
    const aborted = statements.filter(({ kind }) => kind === "abort").map(({ generation }) => generation);
    return statements
      .filter(({ kind }) => kind === "announce")
      .map(({ generation }) => ({ path: pathOf(generation), needed: !aborted.includes(generation) }));
  };

/** Null: it was never written, or the site has disowned it, as it does with a token for another address. */
const ofSites =
  (column: AnyPgColumn<{ data: string; notNull: false }>): Find =>
  async (db) => {
    const rows = await db.select({ path: column }).from(maasSites).where(isNotNull(column));
    return rows.flatMap(({ path }) => (path === null ? [] : [{ path, needed: true }]));
  };

/**
 * Every kind of secret, and how the database tells where each one lies. A kind that SECRET_PATHS is given does not compile without its line here. The
 * store's own id is not among them: it says of a store that everything else is in it.
 */
const KINDS: Readonly<Record<Exclude<Kind, "storeId">, Find>> = {
  certificateAuthority: always(SECRET_PATHS.certificateAuthority),
  taskSigningKey: always(SECRET_PATHS.taskSigningKey),
  laterCertificateAuthority: later(SECRET_PATHS.laterCertificateAuthority),
  laterTaskSigningKey: later(SECRET_PATHS.laterTaskSigningKey),
  maasToken: ofSites(maasSites.apiTokenVaultPath),
  defaultPower: ofSites(maasSites.defaultPowerCredsVaultPath),
  deployPassword: ofSites(maasSites.deployPasswordVaultPath),
  powerOverride: async (db) => {
    const { vaultPath: path, status } = maasPowerCredentialOverrides;
    // A disabled one may be enabled again with the login that it had; a deleted one is disabled too, and has none.
    return db.select({ path, needed: eq(status, "active").mapWith(Boolean) }).from(maasPowerCredentialOverrides);
  },
  webhookSecret: async (db) => {
    const rows = await db.select({ id: webhooks.id }).from(webhooks);
    return rows.map(({ id }) => ({ path: SECRET_PATHS.webhookSecret(id), needed: true }));
  },
  // There between two stages of a node's deploy alone.
  userData: async (db) => {
    const rows = await db.select({ id: nodes.id }).from(nodes);
    return rows.map(({ id }) => ({ path: SECRET_PATHS.userData(id), needed: false }));
  },
};

/** Of this database, in a fixed order. */
export async function namedSecrets(db: Db): Promise<NamedSecret[]> {
  const found: NamedSecret[] = [];
  for (const find of Object.values(KINDS)) {
    const ofKind = await find(db);
    found.push(...ofKind.sort((a, b) => (a.path < b.path ? -1 : 1)));
  }
  return found;
}
