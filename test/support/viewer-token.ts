import { apiToken } from "./api-token.ts";
import type { TestDatabase } from "./database.ts";

/** Creates an API token with the role `viewer`, which allows its owner to read everything and to change nothing. */
export const viewerToken = (database: TestDatabase): Promise<string> =>
  apiToken(database, { name: "watcher", role: "viewer" });
