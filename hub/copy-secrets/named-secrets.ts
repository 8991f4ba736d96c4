import { type AnyPgColumn, eq, isNotNull } from "../db/orm.ts";
import { readStatements } from "../db/queries/authority-statements.ts";
import { maasPowerCredentialOverrides, maasSites, nodes, signalSenders, webhooks } from "../db/schema/index.ts";
import type { Db } from "../db/tx.ts";
import { SECRET_PATHS } from "../secrets/port.ts";

export interface NamedSecret {
  readonly path: string;
  /** True if the secret must exist in the source store; false if the secret may be absent. */
  readonly needed: boolean;
}

type Kind = keyof typeof SECRET_PATHS;
type Find = (db: Db) => Promise<NamedSecret[]>;

const always =
  (path: string): Find =>
  async () => [{ path, needed: true }];

/**
 * Finds the secrets of later key generations. The copy of secrets leaves out the keys of an aborted key rotation, because nothing is signed with the
 * keys of such a rotation.
 */
const later =
  (pathOf: (generation: number) => string): Find =>
  async (db) => {
    const statements = (await readStatements(db)).map(({ statement }) => statement);
    const aborted = statements.filter(({ kind }) => kind === "abort").map(({ generation }) => generation);
    return statements
      .filter(({ kind }) => kind === "announce")
      .map(({ generation }) => ({ path: pathOf(generation), needed: !aborted.includes(generation) }));
  };

/**
 * Finds one kind of site secret by the column that holds its path in the secret store; the path is null if nobody has written the secret. The path of
 * the MAAS token is also null after a change of the site's address.
 */
const ofSites =
  (column: AnyPgColumn<{ data: string; notNull: false }>): Find =>
  async (db) => {
    const rows = await db.select({ path: column }).from(maasSites).where(isNotNull(column));
    return rows.flatMap(({ path }) => (path === null ? [] : [{ path, needed: true }]));
  };

/**
 * All kinds of secrets, each with the query that finds its paths. The TypeScript compiler refuses a KINDS that lacks a kind of SECRET_PATHS. KINDS
 * does not contain the secret store's own id, because the id marks a complete store and is copied last.
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
    // An operator may enable a disabled power override with its stored login, so the copy includes this login if the login exists. A disabled power
    // override has no login if an operator deleted the override.
    return db.select({ path, needed: eq(status, "active").mapWith(Boolean) }).from(maasPowerCredentialOverrides);
  },
  webhookSecret: async (db) => {
    const rows = await db.select({ id: webhooks.id }).from(webhooks);
    return rows.map(({ id }) => ({ path: SECRET_PATHS.webhookSecret(id), needed: true }));
  },
  signalSender: async (db) => {
    const rows = await db.select({ id: signalSenders.id, revokedAt: signalSenders.revokedAt }).from(signalSenders);
    return rows.map(({ id, revokedAt }) => ({ path: SECRET_PATHS.signalSender(id), needed: revokedAt === null }));
  },
  // A node's user-data is in the secret store only between two stages of its deploy.
  userData: async (db) => {
    const rows = await db.select({ id: nodes.id }).from(nodes);
    return rows.map(({ id }) => ({ path: SECRET_PATHS.userData(id), needed: false }));
  },
};

export async function namedSecrets(db: Db): Promise<NamedSecret[]> {
  const found: NamedSecret[] = [];
  for (const find of Object.values(KINDS)) {
    const ofKind = await find(db);
    found.push(...ofKind.sort((a, b) => (a.path < b.path ? -1 : 1)));
  }
  return found;
}
