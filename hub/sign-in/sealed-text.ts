import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";

const ALGORITHM = "aes-256-gcm";
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** The key that seals a session's text is derived from the session's id, of which the database has only the hash. */
const keyOf = (sessionId: string): Buffer =>
  Buffer.from(hkdfSync("sha256", sessionId, "", "muster session refresh token", 32));

/** Seals a text for the database, so that only a request with the session's cookie can open it. */
export function sealText(text: string, sessionId: string): string {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(ALGORITHM, keyOf(sessionId), nonce, { authTagLength: TAG_BYTES });
  const sealed = Buffer.concat([cipher.update(text, "utf8"), cipher.final()]);
  return Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString("base64url");
}

/** Returns the text that `sealText` sealed; null if another session sealed it, or if somebody changed it. */
export function openText(sealed: string, sessionId: string): string | null {
  const bytes = Buffer.from(sealed, "base64url");
  if (bytes.length < NONCE_BYTES + TAG_BYTES) return null;
  const decipher = createDecipheriv(ALGORITHM, keyOf(sessionId), bytes.subarray(0, NONCE_BYTES), {
    authTagLength: TAG_BYTES,
  });
  decipher.setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
  try {
    return decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES), undefined, "utf8") + decipher.final("utf8");
  } catch {
    return null;
  }
}
