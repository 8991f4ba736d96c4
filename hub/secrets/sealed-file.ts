import { createCipheriv, createDecipheriv, createHash, randomBytes } from "node:crypto";
import { link, mkdir, open, readFile, rename, stat, unlink } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { type Replaces, type SecretData, SecretError, type SecretStore, type SecretVersion } from "./port.ts";

const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const Stored = z.record(z.string(), z.string());

const hasCode = (error: unknown, code: string): boolean =>
  error instanceof Error && "code" in error && error.code === code;

/** The name of the file that holds the secret at a path. */
export const sealedFileOf = (path: string): string => `${createHash("sha256").update(path).digest("hex")}.sealed`;

/**
 * The embedded secret store (decision P3) has one AES-256-GCM file for each path, and the encryption key in a file of mode 0600. Each secret's file
 * is bound to its secret's path, so nobody can exchange the files of two secrets. Operators must keep the key of the secret store and the secrets'
 * files apart in backups.
 */
export async function openSealedFileStore(options: { directory: string }): Promise<SecretStore> {
  const { directory } = options;
  await mkdir(directory, { recursive: true, mode: 0o700 }).catch((error: unknown) => {
    throw new SecretError(
      "secret_store_unavailable",
      directory,
      "The folder of the secret store cannot be made; check the disk and who owns the folder above",
      error,
    );
  });
  const key = await readOrMakeKey(directory);
  const fileOf = (path: string): string => join(directory, sealedFileOf(path));
  return {
    read: async (path) => unseal(key, path, await readSealed(path, fileOf(path))),
    readVersion: async (path) => {
      const sealed = await readSealed(path, fileOf(path));
      return { data: unseal(key, path, sealed), version: versionOf(sealed) };
    },
    write: async (path, data, replaces) => {
      const sealed = seal(key, path, data);
      const put = replaces === undefined ? writeDurably : replaceDurably(path, replaces);
      await put(directory, fileOf(path), sealed).catch((error: unknown) => {
        if (error instanceof SecretError) throw error;
        throw new SecretError(
          "secret_store_unavailable",
          path,
          "The secret could not be written; check the disk and the folder's owner",
          error,
        );
      });
    },
    check: async () => {
      const file = join(directory, "key");
      if ((await readKey(file)) === null)
        throw unusableKey(file)("The key of the secret store is gone; restore it from a backup");
    },
    remove: async (path) => {
      try {
        await unlink(fileOf(path));
        await syncFolder(directory);
      } catch (error) {
        if (hasCode(error, "ENOENT")) return;
        throw new SecretError(
          "secret_store_unavailable",
          path,
          "The secret could not be removed; check the folder's owner",
          error,
        );
      }
    },
  };
}

async function readSealed(path: string, file: string): Promise<Buffer> {
  try {
    return await readFile(file);
  } catch (error) {
    if (hasCode(error, "ENOENT"))
      throw new SecretError("secret_missing", path, "There is no such secret; write it first");
    throw new SecretError(
      "secret_store_unavailable",
      path,
      "The secret cannot be read; check the disk and the folder's owner",
      error,
    );
  }
}

/** The nonce in a secret's file serves as the version, because each write has a new nonce. */
const versionOf = (sealed: Buffer): SecretVersion => sealed.subarray(0, NONCE_BYTES).toString("hex") as SecretVersion;

function seal(key: Buffer, path: string, data: SecretData): Buffer {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv("aes-256-gcm", key, nonce).setAAD(Buffer.from(path));
  return Buffer.concat([nonce, cipher.update(JSON.stringify(data)), cipher.final(), cipher.getAuthTag()]);
}

function unseal(key: Buffer, path: string, sealed: Buffer): SecretData {
  try {
    const decipher = createDecipheriv("aes-256-gcm", key, sealed.subarray(0, NONCE_BYTES)).setAAD(Buffer.from(path));
    decipher.setAuthTag(sealed.subarray(sealed.length - TAG_BYTES));
    const text = Buffer.concat([
      decipher.update(sealed.subarray(NONCE_BYTES, sealed.length - TAG_BYTES)),
      decipher.final(),
    ]);
    return Stored.parse(JSON.parse(text.toString("utf8")));
  } catch {
    // The error for an unreadable secret leaves out its cause on purpose, because a parser's message may quote the secret.
    throw new SecretError(
      "secret_corrupt",
      path,
      "The secret is damaged or sealed with another key; restore it from a backup or write it again",
    );
  }
}

const unusableKey =
  (file: string) =>
  (detail: string, cause?: unknown): SecretError =>
    new SecretError("secret_store_unavailable", file, detail, cause);

/** Reads the encryption key of the embedded secret store; null if the store has no key yet. */
async function readKey(file: string): Promise<Buffer | null> {
  const unusable = unusableKey(file);
  try {
    const { mode } = await stat(file);
    if ((mode & 0o077) !== 0)
      throw unusable("The key of the secret store is open to others; chmod it to 0600 and rotate the secrets");
    const key = await readFile(file);
    if (key.length !== KEY_BYTES) throw unusable("The key of the secret store is damaged; restore it from a backup");
    return key;
  } catch (error) {
    if (error instanceof SecretError) throw error;
    if (hasCode(error, "ENOENT")) return null;
    throw unusable("The key of the secret store cannot be read; check the folder's owner", error);
  }
}

/**
 * Reads the encryption key of the embedded secret store, or creates it once. If several hubs start at once on one folder, the first hub links its new
 * key into place, and every hub reads this key.
 */
async function readOrMakeKey(directory: string): Promise<Buffer> {
  const file = join(directory, "key");
  const unusable = unusableKey(file);
  for (let attempt = 0; attempt < 2; attempt += 1) {
    const present = await readKey(file);
    if (present !== null) return present;
    const fresh = `${file}.${randomBytes(6).toString("hex")}`;
    try {
      await writeDurably(directory, fresh, randomBytes(KEY_BYTES));
      await link(fresh, file);
      await syncFolder(directory);
    } catch (error) {
      if (!hasCode(error, "EEXIST"))
        throw unusable("The key of the secret store could not be made; check the disk and the folder's owner", error);
    } finally {
      // An error when the hub removes a new key's temporary file is ignored: the file may not exist, for example if the disk was full, and a
      // remaining file does no harm.
      await unlink(fresh).catch(() => undefined);
    }
  }
  throw unusable("The key of the secret store could not be made");
}

/**
 * When `writeDurably` returns, the bytes of the secret's file are on the disk. If `writeDurably` throws, the secret's file has its old content or
 * does not exist.
 */
async function writeDurably(directory: string, file: string, bytes: Buffer): Promise<void> {
  await withTemporary(file, bytes, (temporary) => rename(temporary, file));
  await syncFolder(directory);
}

/**
 * The age in milliseconds at which a writer of secrets removes another writer's file `.next`. A writer makes a file `.next` beside a secret's file to
 * replace the secret, and may die before the file is renamed.
 */
const CLAIM_LAPSES_MS = 10_000;

/**
 * Replaces a secret's file only if the file holds the expected version (check-and-set). The check of the secret's version is safe even if several
 * hubs write to one shared folder. A writer first links the new version's file to a file name that only one writer can take, and then renames this
 * file over the secret's old file.
 */
const replaceDurably =
  (path: string, replaces: Replaces) =>
  async (directory: string, file: string, bytes: Buffer): Promise<void> => {
    const conflict = (): SecretError =>
      new SecretError(
        "secret_conflict",
        path,
        "Somebody else wrote the secret at the same time, and this write had no effect. Look which one is right, then write again",
      );
    const next = replaces === "nothing" ? file : `${file}.next`;
    await withTemporary(file, bytes, (temporary) => link(temporary, next)).catch(async (error: unknown) => {
      if (!hasCode(error, "EEXIST")) throw error;
      if (next !== file) await dropLapsed(next);
      throw conflict();
    });
    if (next !== file) {
      const present = await readFile(file).catch(() => null);
      if (present === null || versionOf(present) !== replaces) {
        await unlink(next);
        throw conflict();
      }
      await rename(next, file);
    }
    await syncFolder(directory);
  };

async function dropLapsed(next: string): Promise<void> {
  const claimed = await stat(next).catch(() => null);
  if (claimed !== null && Date.now() - claimed.mtimeMs > CLAIM_LAPSES_MS) await unlink(next).catch(() => undefined);
}

/**
 * Calls `use` with the name of a temporary file whose content `bytes` is already on the disk. After `use`, `withTemporary` deletes the temporary
 * file.
 */
async function withTemporary(file: string, bytes: Buffer, use: (temporary: string) => Promise<void>): Promise<void> {
  const temporary = `${file}.${randomBytes(6).toString("hex")}.tmp`;
  const handle = await open(temporary, "wx", 0o600);
  try {
    try {
      await handle.writeFile(bytes);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await use(temporary);
  } finally {
    // If `use` has renamed the temporary file, the temporary name no longer exists.
    await unlink(temporary).catch(() => undefined);
  }
}

/** A file's new name survives a power cut only after the file's folder was written to the disk. */
async function syncFolder(directory: string): Promise<void> {
  const folder = await open(directory, "r");
  await folder.sync().finally(() => folder.close());
}
