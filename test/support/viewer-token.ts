import { createHash, randomBytes } from "node:crypto";
import { putApiToken } from "../../hub/db/queries/api-requests.ts";
import type { TestDatabase } from "./database.ts";

/** Creates an API token with the role `viewer`, which allows its owner to read everything and to change nothing. */
export async function viewerToken({ database }: TestDatabase): Promise<string> {
  const token = randomBytes(24).toString("base64url");
  const tokenSha256 = createHash("sha256").update(token).digest("hex");
  await database.inTx((tx) => putApiToken(tx, { name: "watcher", role: "viewer", tokenSha256 }));
  return token;
}
