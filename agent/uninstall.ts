import { dirname } from "node:path";
import type { TaskId } from "../shared/ids.ts";
import { INTERVAL_DROP_IN } from "./interval-drop-in.ts";
import type { Log } from "./log.ts";
import { NOLOGIN, NOLOGIN_START } from "./system/nologin.ts";
import type { System } from "./system/system.ts";

/** The exit status of an agent that has removed itself, so that systemd does not restart the agent (`RestartPreventExitStatus`). */
export const UNINSTALLED_STATUS = 79;

const AGENT_UNIT = "muster-agent.service";
const BOOTSTRAP_UNIT = "muster-bootstrap.service";
const ROCE_UNIT = "muster-roce-routing.service";
const UNIT_FOLDER = "/etc/systemd/system";
const SYNC_DROP_IN_FOLDER = `${UNIT_FOLDER}/maas_hardware_sync.service.d`;
const STATE_FOLDER = "/var/lib/muster";
const CONFIG_FOLDER = "/etc/muster";
/**
 * The files and folders in /var/lib/muster and /etc/muster that the agent and the bootstrap parts own. The agent's removal must keep the files of a
 * hub on the same computer.
 */
const STATE_ENTRIES = ["agent", "bootstrap", "hardware-sync.json"];
const CONFIG_ENTRIES = ["agent.json", "ca.pem", "enrollment-token", "roce-routing.conf"];
/** Matches temporary files that a bootstrap part or an agent left because it was killed during a write. */
const CUT_WRITE = /^[.](muster[.][A-Za-z0-9]{6}|[0-9a-f]{12}[.]tmp|uninstall-probe)$/;
/** dpkg's list of the files in the agent's Debian package, which exists only if the agent was installed as a package. */
const PACKAGE_RECORD = "/var/lib/dpkg/info/muster-agent.list";
/**
 * While the marker file `uninstalling` exists, the agent only continues its own removal. The purge of the agent's Debian package also removes the
 * marker file `uninstalling`.
 */
const MARKER = `${STATE_FOLDER}/uninstalling`;
const TOOL_TIMEOUT_MS = 30_000;
/**
 * Another package job may hold dpkg's lock for a long time. The purge of the agent's package is tried every 15 s for an hour, and again after each
 * boot.
 */
const PURGE_RETRIES = ["Restart=on-failure", "RestartSec=15", "StartLimitIntervalSec=1d", "StartLimitBurst=240"];

async function ownEntries(system: System, folder: string, names: readonly string[]): Promise<string[]> {
  const own = (await system.list(folder)).filter((name) => names.includes(name) || CUT_WRITE.test(name));
  return own.map((name) => `${folder}/${name}`);
}

export async function footprint(system: System): Promise<readonly string[]> {
  const sudoRules = (await system.list("/etc/sudoers.d")).filter((name) => name.startsWith("90-muster-"));
  const fixed = [
    `${UNIT_FOLDER}/${BOOTSTRAP_UNIT}`,
    "/usr/local/sbin/muster-bootstrap",
    `${UNIT_FOLDER}/${ROCE_UNIT}`,
    "/usr/local/sbin/muster-roce-routing",
    `${SYNC_DROP_IN_FOLDER}/50-muster.conf`,
    INTERVAL_DROP_IN,
    ...sudoRules.map((name) => `/etc/sudoers.d/${name}`),
    ...((await system.read(NOLOGIN))?.startsWith(NOLOGIN_START) === true ? [NOLOGIN] : []),
    ...(await ownEntries(system, CONFIG_FOLDER, CONFIG_ENTRIES)),
    ...(await ownEntries(system, STATE_FOLDER, STATE_ENTRIES)),
    `${UNIT_FOLDER}/${AGENT_UNIT}`,
  ];
  const present = await Promise.all(fixed.map((path) => system.isPresent(path)));
  return fixed.filter((_path, index) => present[index]);
}

/** `probeRemoval` throws when the agent's folders cannot be written, for example on a read-only disk. */
export async function probeRemoval(system: System): Promise<void> {
  for (const folder of [STATE_FOLDER, CONFIG_FOLDER]) {
    const probe = `${folder}/.uninstall-probe`;
    await system.write(probe, "", 0o600);
    await system.remove(probe);
  }
}

/** Starts the purge of the agent's package in a systemd unit of its own, because the purge stops the agent. */
async function purgePackage(system: System): Promise<void> {
  const properties = PURGE_RETRIES.flatMap((property) => ["-p", property]);
  const command = ["--collect", "--no-block", "--unit=muster-agent-purge", ...properties];
  const purge = ["dpkg", "--purge", "muster-agent"];
  const { exitCode, stderr } = await system.run("systemd-run", [...command, ...purge], TOOL_TIMEOUT_MS);
  if (exitCode !== 0) throw new Error(`systemd-run ended with status ${exitCode}: ${stderr.slice(-500)}`);
}

/** Writes the marker file `uninstalling`, so that an agent that starts again continues its own removal from the host. */
export async function markUninstalling(system: System, taskId: TaskId): Promise<void> {
  await system.write(MARKER, `${JSON.stringify({ task_id: taskId })}\n`, 0o600);
}

export const isUninstalling = async (system: System): Promise<boolean> => (await system.read(MARKER)) !== null;

/**
 * The agent removes its own systemd unit and the marker file `uninstalling` last, so that an interrupted removal of the agent continues. If the agent
 * was installed as a package, only the purge of the package removes the marker file and the unit. The agent requests the purge of its package at each
 * boot until the purge succeeds. During its removal, the agent logs and skips a file that it cannot remove.
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
  const removeIfEmpty = async (folder: string): Promise<void> => {
    if ((await system.list(folder)).length === 0) await attempt(folder, () => system.removeTree(folder));
  };
  const isPackaged = await system.isPresent(PACKAGE_RECORD);
  const paths = await footprint(system);
  for (const unit of [BOOTSTRAP_UNIT, ROCE_UNIT]) {
    if (paths.includes(`${UNIT_FOLDER}/${unit}`)) await attempt(unit, () => systemctl("disable", "--now", unit));
  }
  const unit = `${UNIT_FOLDER}/${AGENT_UNIT}`;
  for (const path of paths.filter((one) => one !== unit)) await attempt(path, () => system.removeTree(path));
  await removeIfEmpty(SYNC_DROP_IN_FOLDER);
  await removeIfEmpty(dirname(INTERVAL_DROP_IN));
  await removeIfEmpty(CONFIG_FOLDER);
  if (!isPackaged) await attempt(AGENT_UNIT, () => systemctl("disable", AGENT_UNIT));
  await attempt(unit, () => system.removeTree(unit));
  await attempt("systemd", () => systemctl("daemon-reload"));
  if (isPackaged) {
    await attempt("the package", () => purgePackage(system));
    log.info("Muster was removed from this host, but for its package, which dpkg is about to purge");
    return;
  }
  await attempt(MARKER, () => system.removeTree(MARKER));
  await removeIfEmpty(STATE_FOLDER);
  log.info("Muster was removed from this host");
}
