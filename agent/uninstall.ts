import type { TaskId } from "../shared/ids.ts";
import type { Log } from "./log.ts";
import type { System } from "./system/system.ts";
import { NOLOGIN, NOLOGIN_START } from "./tasks/drain.ts";

/** Exit status of an agent that has removed itself; its unit does not start it again (`RestartPreventExitStatus`). */
export const UNINSTALLED_STATUS = 79;

const AGENT_UNIT = "muster-agent.service";
const BOOTSTRAP_UNIT = "muster-bootstrap.service";
const ROCE_UNIT = "muster-roce-routing.service";
const UNIT_FOLDER = "/etc/systemd/system";
const SYNC_DROP_IN_FOLDER = `${UNIT_FOLDER}/maas_hardware_sync.service.d`;
const STATE_FOLDER = "/var/lib/muster";
const CONFIG_FOLDER = "/etc/muster";
/** There where the agent came as a Debian package. */
const PACKAGE_RECORD = "/var/lib/dpkg/info/muster-agent.list";
/** While it is there, all that is left of the agent's life is to go on removing. */
const MARKER = `${STATE_FOLDER}/uninstalling`;
const TOOL_TIMEOUT_MS = 30_000;

/** What the cloud-init parts and the agent put on a host and that is there now, in the order of removal. */
export async function footprint(system: System): Promise<readonly string[]> {
  const sudoRules = (await system.list("/etc/sudoers.d")).filter((name) => name.startsWith("90-muster-"));
  const fixed = [
    `${UNIT_FOLDER}/${BOOTSTRAP_UNIT}`,
    "/usr/local/sbin/muster-bootstrap",
    `${UNIT_FOLDER}/${ROCE_UNIT}`,
    "/usr/local/sbin/muster-roce-routing",
    `${SYNC_DROP_IN_FOLDER}/50-muster.conf`,
    ...sudoRules.map((name) => `/etc/sudoers.d/${name}`),
    ...((await system.read(NOLOGIN))?.startsWith(NOLOGIN_START) === true ? [NOLOGIN] : []),
    CONFIG_FOLDER,
    `${UNIT_FOLDER}/${AGENT_UNIT}`,
    STATE_FOLDER,
  ];
  const present = await Promise.all(fixed.map((path) => system.isPresent(path)));
  return fixed.filter((_path, index) => present[index]);
}

/** Throws when the folders that hold the agent cannot be written, e.g. on a disk that has become read-only. */
export async function probeRemoval(system: System): Promise<void> {
  for (const folder of [STATE_FOLDER, CONFIG_FOLDER]) {
    const probe = `${folder}/.uninstall-probe`;
    await system.write(probe, "", 0o600);
    await system.remove(probe);
  }
}

/** By a unit of its own, since the purge stops the agent. */
async function purgePackage(system: System): Promise<void> {
  if (!(await system.isPresent(PACKAGE_RECORD))) return;
  const command = ["--collect", "--no-block", "--unit=muster-agent-purge", "dpkg", "--purge", "muster-agent"];
  const { exitCode, stderr } = await system.run("systemd-run", command, TOOL_TIMEOUT_MS);
  if (exitCode !== 0) throw new Error(`systemd-run ended with status ${exitCode}: ${stderr.slice(-500)}`);
}

/** The point of no return, on disk before anything is removed. */
export async function markUninstalling(system: System, taskId: TaskId): Promise<void> {
  await system.write(MARKER, `${JSON.stringify({ task_id: taskId })}\n`, 0o600);
}

export const isUninstalling = async (system: System): Promise<boolean> => (await system.read(MARKER)) !== null;

/**
 * Removes what Muster put on the host. Killed in the middle it goes on at the next start: the marker goes last, the agent's unit, which is what
 * starts it, right before it. What cannot be removed is logged and does not keep the rest: nobody is left to be told.
 */
export async function removeFootprint(system: System, log: Log): Promise<void> {
  const attempt = async (what: string, act: () => Promise<unknown>): Promise<void> => {
    try {
      await act();
    } catch (error) {
      log.warn("something could not be removed and is left on the host", { what, error });
    }
  };
  const systemctl = async (...args: string[]): Promise<void> => {
    const { exitCode, stderr } = await system.run("systemctl", args, TOOL_TIMEOUT_MS);
    if (exitCode !== 0)
      throw new Error(`systemctl ${args.join(" ")} ended with status ${exitCode}: ${stderr.slice(-500)}`);
  };
  const paths = await footprint(system);
  for (const unit of [BOOTSTRAP_UNIT, ROCE_UNIT]) {
    if (paths.includes(`${UNIT_FOLDER}/${unit}`)) await attempt(unit, () => systemctl("disable", "--now", unit));
  }
  const last = [`${UNIT_FOLDER}/${AGENT_UNIT}`, STATE_FOLDER];
  for (const path of paths.filter((one) => !last.includes(one))) await attempt(path, () => system.removeTree(path));
  if ((await system.list(SYNC_DROP_IN_FOLDER)).length === 0)
    await attempt(SYNC_DROP_IN_FOLDER, () => system.removeTree(SYNC_DROP_IN_FOLDER));
  for (const name of await system.list(STATE_FOLDER)) {
    const path = `${STATE_FOLDER}/${name}`;
    if (path !== MARKER) await attempt(path, () => system.removeTree(path));
  }
  await attempt(AGENT_UNIT, () => systemctl("disable", AGENT_UNIT));
  await attempt(AGENT_UNIT, () => system.removeTree(`${UNIT_FOLDER}/${AGENT_UNIT}`));
  await attempt("systemd", () => systemctl("daemon-reload"));
  await attempt("the package", () => purgePackage(system));
  await attempt(STATE_FOLDER, () => system.removeTree(STATE_FOLDER));
  log.info("Muster was removed from this host");
}
