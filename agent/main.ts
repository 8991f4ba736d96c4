/**
 * The agent's composition root. Exit status: 0 after SIGTERM or SIGINT, 78 for a configuration that cannot be used, 1 for a fault of its own
 * (systemd starts it again). No network reason ends it.
 */
import { join } from "node:path";
import { Agent } from "./agent.ts";
import { type Config, ConfigError, loadConfig } from "./config.ts";
import { IdentityStore } from "./identity.ts";
import { Journal } from "./journal.ts";
import { createLog } from "./log.ts";
import { signingKey } from "./orders.ts";
import { Runner } from "./runner.ts";
import { systemAt } from "./system/system.ts";
import { handlersFor } from "./tasks/index.ts";
import { AGENT_VERSION } from "./version.ts";

const log = createLog();

function configOrExit(): Config {
  try {
    return loadConfig(process.argv.slice(2), process.env);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    log.error("the agent cannot start", { error });
    process.exit(78);
  }
}

const config = configOrExit();
const system = systemAt(config.root, log);
const journal = await Journal.open(join(config.stateDir, "journal"));
const agent = new Agent({ config, system, journal, log, identities: new IdentityStore(config, system, log) });
agent.use(
  new Runner({
    journal,
    handlers: handlersFor(system),
    key: signingKey(config.taskSigningPublicKey),
    nodeId: config.nodeId,
    now: agent.now,
    send: agent.send,
    log,
  }),
);

for (const name of ["SIGTERM", "SIGINT"] as const) process.once(name, () => agent.stop());
log.info("agent started", {
  version: AGENT_VERSION,
  node_id: config.nodeId,
  generation: config.generation,
  hub: config.hubUrl.host,
});
await agent.run();
await journal.close();
log.info("agent stopped");
process.exit(0);
