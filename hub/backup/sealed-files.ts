import { constants } from "node:fs";
import { copyFile, mkdir, readdir, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { NamedSecret } from "../copy-secrets/named-secrets.ts";
import { SECRET_PATHS, SecretError, type SecretStore } from "../secrets/port.ts";
import { openSealedFileStore, sealedFileOf } from "../secrets/sealed-file.ts";

const isMissing = (error: unknown): boolean =>
  error instanceof SecretError && (error.code === "secret_missing" || error.code === "secret_corrupt");

/** Returns the paths of those secrets in `named` that are needed and that the secret store lacks or whose value cannot be read. */
export async function missingSecrets(secrets: SecretStore, named: readonly NamedSecret[]): Promise<string[]> {
  const missing: string[] = [];
  for (const { path, needed } of named)
    if (needed)
      await secrets.read(path).catch((error: unknown) => {
        if (!isMissing(error)) throw error;
        missing.push(path);
      });
  return missing;
}

/**
 * Copies the sealed files of all named secrets into the backup. The key of the secret store is never copied, because an operator keeps the key and
 * the sealed files apart. A hub writes a secret before the database names the secret. A copy that begins after the database's snapshot therefore
 * has each secret that the snapshot names, unless somebody removed the secret since.
 */
export async function keepSealedFiles(store: string, backup: string, named: readonly NamedSecret[]): Promise<number> {
  await mkdir(backup, { mode: 0o700 });
  let kept = 0;
  for (const path of [...named.map((one) => one.path), SECRET_PATHS.storeId]) {
    const file = sealedFileOf(path);
    try {
      await copyFile(join(store, file), join(backup, file), constants.COPYFILE_EXCL);
      kept += 1;
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "ENOENT")) throw error;
    }
  }
  return kept;
}

const isThere = async (file: string): Promise<boolean> => (await stat(file).catch(() => null)) !== null;

const refuse = (detail: string): SecretError =>
  new SecretError("secret_store_misconfigured", SECRET_PATHS.storeId, detail);

/**
 * Adds the backup's sealed files that the secret store lacks. A file that the secret store already has stays, because the store's secrets are newer
 * than those of the backup. Before `giveBackSealedFiles` adds any secret, it checks that the store's key opens the backup's files.
 */
export async function giveBackSealedFiles(backup: string, store: string, storeId: string): Promise<number> {
  if (!(await isThere(join(store, "key"))))
    throw refuse(
      `The key of the secret store is not in ${store}. The backup does not contain the key. Create the folder with mode 0700, copy the key into it as the file \`key\` with mode 0600 and the hub's user as its owner, then run this command again`,
    );
  const secrets = await openSealedFileStore({ directory: store });
  const idFile = sealedFileOf(SECRET_PATHS.storeId);
  const wasThere = await isThere(join(store, idFile));
  if (!wasThere) await addFile(join(backup, idFile), join(store, idFile));
  const id = await secrets.read(SECRET_PATHS.storeId).then(
    (data) => data["id"],
    (error: unknown) => {
      if (isMissing(error)) return null;
      throw error;
    },
  );
  if (id !== storeId) {
    if (!wasThere) await rm(join(store, idFile));
    throw refuse(
      `The secret store in ${store} is not the one of the backup: ${id === null ? "its key does not open the backup's secrets" : "it belongs to another installation"}. Put the right key and files there, or name another folder by MUSTER_SHARED_DIR`,
    );
  }
  let added = wasThere ? 0 : 1;
  for (const file of await readdir(backup)) {
    if (await isThere(join(store, file))) continue;
    await addFile(join(backup, file), join(store, file));
    added += 1;
  }
  return added;
}

async function addFile(from: string, to: string): Promise<void> {
  await copyFile(from, `${to}.restoring`);
  await rename(`${to}.restoring`, to);
}
