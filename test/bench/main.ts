/** Prints the figures of docs/benchmarks.md. Every figure is measured in this run on real processes; nothing here asserts a time. */
import { mkdirSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { join, resolve } from "node:path";
import { startEmbeddedPostgres } from "../../hub/db/embedded/embedded-postgres.ts";
import { migrate } from "../../hub/db/migrate.ts";
import { quietLog } from "../support/log.ts";
import { measureAgentMemory } from "./agent-memory.ts";
import { printFigure } from "./figure.ts";
import { measureMaasRequests } from "./maas-requests.ts";
import { describeMachine } from "./machine.ts";
import { measureStageMoves } from "./stage-moves.ts";

const stateDir = resolve(".muster/bench");
rmSync(stateDir, { recursive: true, force: true });
mkdirSync(stateDir, { recursive: true });

const freePort = (): Promise<number> =>
  new Promise((done, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() =>
        address === null || typeof address === "string" ? reject(new Error("no port")) : done(address.port),
      );
    });
  });

async function stageMoves() {
  const postgres = await startEmbeddedPostgres({ stateDir: join(stateDir, "moves"), log: quietLog });
  try {
    await migrate(postgres.url);
    return await measureStageMoves(postgres.url);
  } finally {
    await postgres.stop();
  }
}

process.stdout.write(`${describeMachine()}\n\n`);
for (const measure of [
  stageMoves,
  () => measureMaasRequests(join(stateDir, "maas")),
  async () => measureAgentMemory(join(stateDir, "memory"), await freePort()),
]) {
  for (const figure of await measure()) process.stdout.write(`${printFigure(figure)}\n`);
}
process.exit(0);
