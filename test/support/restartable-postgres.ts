import { chmodSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../../hub/db/embedded/embedded-postgres.ts";
import { readPostmaster } from "../../hub/db/embedded/postmaster.ts";
import { quietLog } from "./log.ts";

export interface RestartablePostgres {
  readonly url: string;
  /**
   * The stop mode `fast` of PostgreSQL rolls open transactions back. The stop mode `immediate` ends PostgreSQL without clean-up, so that the next
   * start of PostgreSQL needs crash recovery.
   */
  restart(how: "fast" | "immediate" | "kill", whileDown?: () => Promise<unknown>): Promise<void>;
  stop(): Promise<void>;
}

const SIGNALS = { fast: "SIGINT", immediate: "SIGQUIT", kill: "SIGKILL" } as const;

export async function startRestartablePostgres(stateDir: string): Promise<RestartablePostgres> {
  mkdirSync(stateDir, { recursive: true });
  // If root runs the tests, PostgreSQL runs as another user, who must be able to enter PostgreSQL's state folder.
  chmodSync(stateDir, 0o711);
  const start = (): Promise<EmbeddedPostgres> => startEmbeddedPostgres({ stateDir, log: quietLog });
  let server = await start();
  const { url } = server;
  return {
    url,
    restart: async (how, whileDown) => {
      const postmaster = await readPostmaster(join(stateDir, "postgres", "cluster", "data"));
      if (postmaster === undefined) throw new Error("the server is not running");
      process.kill(postmaster.pid, SIGNALS[how]);
      for (let gone = false; !gone; ) {
        await new Promise((done) => setTimeout(done, 50));
        gone = !isAlive(postmaster.pid);
      }
      await whileDown?.();
      server = await start();
      if (server.url !== url) throw new Error("the server came back at another address");
    },
    stop: () => server.stop(),
  };
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
