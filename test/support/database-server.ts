/**
 * vitest's global set-up for projects that need PostgreSQL. One server a run: the one that MUSTER_TEST_DATABASE_URL
 * names (its user must be able to create databases), else an embedded one, started by the first test that asks and
 * stopped here at the end, or by the next run when this one is killed. It is found by its folder, which the workers learn through the environment.
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
