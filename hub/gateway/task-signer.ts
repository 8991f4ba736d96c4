import { createPrivateKey, createPublicKey, generateKeyPairSync, sign } from "node:crypto";
import { orderSigningText, type SignedOrder, type UnsignedOrder } from "../../shared/tasks/order.ts";
import { SECRET_PATHS, SecretError, type SecretStore } from "../secrets/port.ts";
import { readOrCreate } from "../secrets/read-or-create.ts";

export interface TaskSigner {
  /** Base64url of the raw 32 bytes; hosts get it with their user-data. */
  readonly publicKey: string;
  sign(order: UnsignedOrder): SignedOrder;
}

/** Opens the key that signs task orders; the first hub makes it. */
export async function openTaskSigner(secrets: SecretStore): Promise<TaskSigner> {
  const privateKey = createPrivateKey(await readOrMake(secrets));
  const { x } = createPublicKey(privateKey).export({ format: "jwk" });
  if (x === undefined)
    throw new SecretError(
      "secret_corrupt",
      SECRET_PATHS.taskSigningKey,
      "The task signing key is no Ed25519 key. Restore the secret store from a backup",
    );
  return {
    publicKey: x,
    sign: (order) => ({
      ...order,
      signature: sign(null, Buffer.from(orderSigningText(order)), privateKey).toString("base64url"),
    }),
  };
}

async function readOrMake(secrets: SecretStore): Promise<string> {
  const path = SECRET_PATHS.taskSigningKey;
  const { private_key_pem: pem } = await readOrCreate(secrets, path, async () => ({
    private_key_pem: generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
  }));
  if (pem !== undefined) return pem;
  throw new SecretError(
    "secret_corrupt",
    path,
    "The task signing key is not complete. Restore the secret store from a backup",
  );
}
