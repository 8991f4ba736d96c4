import { parseArgs } from "node:util";
import { createLog } from "../../shared/log.ts";
import { connectedHubs } from "../db/queries/connected-hubs.ts";
import { readSecretStoreId } from "../db/queries/installation.ts";
import type { Db } from "../db/tx.ts";
import { openSecrets, type SecretsSettings } from "../secrets/open.ts";
import { SECRET_PATHS, SecretError, type SecretStore } from "../secrets/port.ts";
import { readStoreId } from "../startup/same-store.ts";
import { type DatabaseSettings, startDatabase } from "../startup/start-database.ts";
import { USAGE } from "../startup/usage.ts";
import { copyOne, copySecrets, type Outcome } from "./copy.ts";
import { namedSecrets } from "./named-secrets.ts";
import {
  adviceOn,
  BROKEN_OFF,
  beganBy,
  type Counts,
  doneBy,
  lineOf,
  nameOf,
  totalOf,
  UNUSED_DATABASE,
} from "./words.ts";

type StoreKind = SecretsSettings["kind"];
const OTHER: Readonly<Record<StoreKind, StoreKind>> = { vault: "sealed_file", sealed_file: "vault" };

/** Returns the hub's settings with the given value of MUSTER_SECRETS. */
export type SettingsWith = (secrets: StoreKind) => DatabaseSettings & { readonly secrets: SecretsSettings };

/** The exit status of `copy-secrets` is 0 for success, 1 for a copy that is not complete, and 2 for an unknown command. */
export async function runCommand(words: readonly string[], settingsWith: SettingsWith): Promise<number> {
  const to = targetOf(words);
  if (to === null) {
    process.stderr.write(USAGE);
    return 2;
  }
  if (to === "help") {
    process.stdout.write(USAGE);
    return 0;
  }
  const from = settingsWith(OTHER[to]).secrets;
  const { secrets, ...database } = settingsWith(to);
  const log = createLog("warn");
  const closers: (() => unknown)[] = [];
  try {
    const { opened } = await startDatabase(database, "muster-copy-secrets", log, closers).catch(noDatabase);
    await refuseWhileHubsRun(opened.db);
    const id = await readSecretStoreId(opened.db);
    if (id === null) throw new Error(UNUSED_DATABASE);
    // Opening a secret store of sealed files creates its folder, so the command `copy-secrets` checks the database first.
    const stores = await Promise.all([from, secrets].map((store) => openSecrets(store, log)));
    closers.push(...stores.map(({ close }) => close));
    const [source, target] = stores.map((store) => store.secrets) as [SecretStore, SecretStore];
    return await copyAll({ db: opened.db, id, from, source, to: secrets, target });
  } finally {
    for (const close of closers.reverse()) await close();
  }
}

function noDatabase(error: unknown): never {
  const reason = error instanceof Error ? error.message : String(error);
  throw new Error(
    `The database that names the secrets cannot be used: ${reason}. Check DATABASE_URL, or without it MUSTER_STATE_DIR, and whether the server runs.`,
    { cause: error },
  );
}

/**
 * Returns the kind of secret store that the arguments of the command `copy-secrets` name. `targetOf` returns null for arguments that `copy-secrets`
 * does not know.
 */
function targetOf(words: readonly string[]): StoreKind | "help" | null {
  try {
    const options = { to: { type: "string" }, help: { type: "boolean" } } as const;
    const { values, positionals } = parseArgs({ args: [...words], options, allowPositionals: true });
    if (values.help === true) return "help";
    if (positionals.join(" ") !== "copy-secrets") return null;
    return values.to === "vault" || values.to === "sealed_file" ? values.to : null;
  } catch {
    return null;
  }
}

const say = (line: string): void => void process.stdout.write(`${line}\n`);

interface Copying {
  readonly db: Db;
  /** The id of the secret store that belongs to the hub's database. */
  readonly id: string;
  readonly from: SecretsSettings;
  readonly source: SecretStore;
  readonly to: SecretsSettings;
  readonly target: SecretStore;
}

async function copyAll(copying: Copying): Promise<number> {
  const { db, id, from, to, target } = copying;
  await refuseOthersStores(copying);
  say(beganBy(from, to));
  const counts = await copyEach(copying);
  const advice = adviceOn(counts, from, to);
  if (advice.length === 0) {
    await refuseWhileHubsRun(db);
    // The command `copy-secrets` writes the secret store's id to the new store last. A hub recognizes its secret store by the id, so no hub can start
    // with an incomplete copy.
    if ((await copyOne(SECRET_PATHS.storeId, { id }, target)) === "differs") throw othersStore(to);
  }
  for (const line of advice.length === 0 ? doneBy(from, to) : advice) say(line);
  return advice.length === 0 ? 0 : 1;
}

async function copyEach({ db, source, target }: Copying): Promise<Counts> {
  const counts: Record<keyof Counts, number> = { ...NONE };
  try {
    for await (const copied of copySecrets(await namedSecrets(db), source, target)) {
      counts[copied.outcome] += 1;
      const line = lineOf(copied);
      if (line !== null) say(line);
    }
  } catch (error) {
    say(`${totalOf(counts)} ${BROKEN_OFF}`);
    throw error;
  }
  say(totalOf(counts));
  return counts;
}

const NONE: Readonly<Record<Outcome, number>> = {
  copied: 0,
  there_already: 0,
  absent: 0,
  missing: 0,
  corrupt: 0,
  differs: 0,
};

/**
 * Refuses to copy secrets while a hub runs. A running hub could change a secret in the old store after the copy, and the new store would lack the new
 * value.
 */
async function refuseWhileHubsRun(db: Db): Promise<void> {
  const hubs = await connectedHubs(db);
  if (hubs.length > 0)
    throw new Error(
      `A hub runs on this database (${hubs.join(", ")}), and may write a secret after that secret was copied. Stop every hub of this database, then run this command again.`,
    );
}

/** Refuses to copy from a secret store that does not belong to the hub's database, or to a secret store that belongs to another installation. */
async function refuseOthersStores({ id, from, source, to, target }: Copying): Promise<void> {
  for (const store of [source, target]) await store.check();
  if ((await readStoreId(source)) !== id)
    throw wrongStore(
      `The store to copy from is ${nameOf(from)}, and it does not belong to the database. Set MUSTER_SHARED_DIR to its folder, or VAULT_ADDR, VAULT_NAMESPACE and MUSTER_VAULT_MOUNT to its Vault`,
    );
  const other = await readStoreId(target);
  if (other !== undefined && other !== id) throw othersStore(to);
}

const wrongStore = (detail: string): SecretError =>
  new SecretError("secret_store_misconfigured", SECRET_PATHS.storeId, detail);
const othersStore = (to: SecretsSettings): SecretError =>
  wrongStore(
    `The store to copy to, ${nameOf(to)}, holds the secrets of another installation. Use a folder or a mount of its own for this installation`,
  );
