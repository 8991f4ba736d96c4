/**
 * vitest's global set-up for projects that need PostgreSQL. A run uses one server. MUSTER_TEST_DATABASE_URL may name the server. The user in
 * `MUSTER_TEST_DATABASE_URL` must be able to create databases. Without MUSTER_TEST_DATABASE_URL the first test that needs a server starts an embedded
 * one. The set-up stops the embedded server at the end of the run. If a run is killed, the next run stops the embedded server of the killed run. An
 * environment variable tells the workers the server's folder.
 */
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startEmbeddedPostgres } from "../../hub/db/embedded/embedded-postgres.ts";
import { quietLog } from "./log.ts";
import { endRun, startRun } from "./run-folder.ts";

/** The embedded server's state folder. */
export const TEST_SERVER_FOLDER = "MUSTER_TEST_SERVER_FOLDER";

export default async function setup(): Promise<() => Promise<void>> {
  const folder = await startRun(tmpdir(), "muster-test");
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
