import { createPrivateKey, createPublicKey, generateKeyPairSync, sign } from "node:crypto";
import { type Countersigned, countersignatureText } from "../../shared/sanitization-document.ts";
import { orderSigningText, type SignedOrder, type UnsignedOrder } from "../../shared/tasks/order.ts";
import { type TrustStatement, trustSigningText, type UnsignedStatement } from "../../shared/trust.ts";
import { SECRET_PATHS, type SecretData, SecretError, type SecretStore } from "../secrets/port.ts";
import { readMade, readOrCreate } from "../secrets/read-or-create.ts";
import type { MissingKey } from "./certificate-authority.ts";

export interface TaskSigner {
  /** The hub's public order key, as base64url of the key's raw 32 bytes. A host gets the public order key with its user-data. */
  readonly publicKey: string;
  sign(order: UnsignedOrder): SignedOrder;
  /** Signs a key statement, by which hosts learn to trust the hub's next keys (decision I6). */
  signStatement(statement: UnsignedStatement): TrustStatement;
  /** Signs the hub's statement about a sanitization record (architecture 14.5). */
  countersign(facts: Countersigned): SignedText;
}

/** A text with its Ed25519 signature in base64, and the order key that signed it. */
export interface SignedText {
  readonly text: string;
  readonly signature: string;
  readonly orderKey: string;
}

/**
 * Reads the hub's task-signing key with the given key number from the secret store. Each rotation of the hub's keys takes the next key number
 * (`generation`). If the task-signing key does not exist yet and may be created, the first hub that opens the key creates it.
 */
export async function openTaskSigner(
  secrets: SecretStore,
  generation = 1,
  missing: MissingKey = "make",
): Promise<TaskSigner> {
  const path = generation === 1 ? SECRET_PATHS.taskSigningKey : SECRET_PATHS.laterTaskSigningKey(generation);
  const privateKey = createPrivateKey(await readOrMake(secrets, path, missing));
  const signed = (text: string): string => sign(null, Buffer.from(text), privateKey).toString("base64url");
  const { x } = createPublicKey(privateKey).export({ format: "jwk" });
  if (x === undefined)
    throw new SecretError(
      "secret_corrupt",
      path,
      "The task signing key is no Ed25519 key. Restore the secret store from a backup",
    );
  return {
    publicKey: x,
    sign: (order) => ({ ...order, signature: signed(orderSigningText(order)) }),
    signStatement: (statement) => ({ ...statement, signature: signed(trustSigningText(statement)) }),
    countersign: (facts) => {
      const text = countersignatureText({ ...facts, order_key: x, key_generation: generation });
      return { text, signature: sign(null, Buffer.from(text), privateKey).toString("base64"), orderKey: x };
    },
  };
}

const make = async (): Promise<SecretData> => ({
  private_key_pem: generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
});

async function readOrMake(secrets: SecretStore, path: string, missing: MissingKey): Promise<string> {
  const { private_key_pem: pem } =
    missing === "make" ? await readOrCreate(secrets, path, make) : await readMade(secrets, path);
  if (pem !== undefined) return pem;
  throw new SecretError(
    "secret_corrupt",
    path,
    "The task signing key is not complete. Restore the secret store from a backup",
  );
}
