/**
 * The agent exits with status 0 after SIGTERM or SIGINT, and with 78 for an unusable configuration. After it has removed itself, the agent exits with
 * status 79, at which systemd does not restart it. Exit status 1 means an internal fault, after which systemd restarts the agent. No network failure
 * ends the agent.
 */
import { join } from "node:path";
import { VERSION } from "../shared/version.ts";
import { Agent } from "./agent.ts";
import { type Config, ConfigError, loadConfig, rootOf } from "./config.ts";
import { giveBackAfterBoot } from "./gpu/give-back-after-boot.ts";
import { HealthWatch } from "./health/watch.ts";
import { IdentityStore } from "./identity.ts";
import { Journal } from "./journal.ts";
import { createLog } from "./log.ts";
import { Runner } from "./runner.ts";
import { type System, systemAt } from "./system/system.ts";
import { WORKER_ARGUMENT } from "./system/workers/work-files.ts";
import { handlersFor } from "./tasks/index.ts";
import { TrustStore } from "./trust.ts";
import { isUninstalling, markUninstalling, removeFootprint, UNINSTALLED_STATUS } from "./uninstall.ts";

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

/** At the agent's start, continues an interrupted uninstall before the agent reads its configuration, which the uninstall may have removed. */
async function uninstallIfMarked(system: System): Promise<void> {
  if (!(await isUninstalling(system))) return;
  await removeFootprint(system, log);
  process.exit(UNINSTALLED_STATUS);
}

// The agent's program also runs as a worker process, which does the work that may hang (decision C6). The agent's own process never loads the code of
// the work that a worker process does.
if (process.argv[2] === WORKER_ARGUMENT) {
  const { runWorker } = await import("./worker.ts");
  process.exit(await runWorker(process.argv.slice(3)));
}
await uninstallIfMarked(systemAt(rootOf(process.env), log));
const config = configOrExit();
const system = systemAt(config.root, log);
await uninstallIfMarked(system);
const journal = await Journal.open(join(config.stateDir, "journal"));
const trust = new TrustStore(config, system, log);
await trust.load();
const identities = new IdentityStore(config, system, trust, log);
const health: HealthWatch = new HealthWatch({
  system,
  log,
  skewMs: () => agent.skewMs(),
  isWorking: () => runner.isWorking,
});
const agent = new Agent({ config, system, journal, log, identities, trust, health });
const runner = new Runner({
  journal,
  handlers: handlersFor(
    system,
    { identity: () => identities.read(), resultOf: (taskId) => journal.resultOf(taskId) },
    health,
  ),
  keys: () => trust.orderKeys(),
  nodeId: config.nodeId,
  now: agent.now,
  send: agent.send,
  onAccepted: async (taskId) => {
    await markUninstalling(system, taskId);
    agent.stop();
  },
  works: system.workers,
  log,
  beforeWork: () => health.quiet(),
});
agent.use(runner);

for (const name of ["SIGTERM", "SIGINT"] as const) process.once(name, () => agent.stop());
log.info("agent started", {
  version: VERSION,
  node_id: config.nodeId,
  generation: config.generation,
  hub: config.hubUrl.host,
});
void giveBackAfterBoot(system, log);
await agent.run();
await journal.close();
await uninstallIfMarked(system);
log.info("agent stopped");
process.exit(0);
