/**
 * vitest's global set-up for projects that need PostgreSQL. All tests of one vitest run use one PostgreSQL server. MUSTER_TEST_DATABASE_URL may name
 * a PostgreSQL server and a user that may create databases. Without MUSTER_TEST_DATABASE_URL, the first test that needs PostgreSQL starts an embedded
 * server. At the end of the vitest run, the function that `setup` returns stops the embedded PostgreSQL server. After a killed vitest run, the next
 * vitest run stops the embedded PostgreSQL server of the killed run.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { startEmbeddedPostgres } from "../../hub/db/embedded/embedded-postgres.ts";
import { quietLog } from "./log.ts";
import { memoryFolder } from "./memory-folder.ts";
import { endRun, startRun } from "./run-folder.ts";

/** The environment variable that tells vitest's workers the state folder of the embedded PostgreSQL server. */
export const TEST_SERVER_FOLDER = "MUSTER_TEST_SERVER_FOLDER";

export default async function setup(): Promise<() => Promise<void>> {
  const folder = await startRun(memoryFolder(), "muster-test");
  process.env[TEST_SERVER_FOLDER] = folder;
  return async () => {
    if (await wasStarted(folder)) {
      const server = await startEmbeddedPostgres({ stateDir: folder, log: quietLog });
      await server.stop();
    }
    await endRun(folder);
  };
}

async function wasStarted(folder: string): Promise<boolean> {
  try {
    await readFile(join(folder, "postgres", "cluster", "port"));
    return true;
  } catch {
    return false;
  }
}
