import type { Machine, User } from "../state/model.ts";
import { SCRIPT_STATUS } from "../state/model.ts";
import { newKey } from "../state/seed.ts";
import { allows, STATUS, STATUS_LABEL } from "../state/statuses.ts";
import { assignAutoAddresses } from "./links.ts";
import { planOf } from "./plans.ts";
import { bmcOf, requireBmc, setPower } from "./power.ts";
import { badFields, notOneOf, stateConflict } from "./refusal.ts";
import type { Region } from "./region.ts";
import { endScriptSet, startScriptSet } from "./scripts.ts";

export interface DeployRequest {
  distroSeries: string | null;
  hweKernel: string | null;
  userData: string | null;
  enableHwSync: boolean;
  ephemeralDeploy: boolean;
  enableKernelCrashDump: boolean;
  agentName: string | null;
  comment: string | null;
}

interface System {
  osystem: string;
  series: string;
  kernel: string;
}

/** Returns the image that `distro_series` names, as `os/series` or as a bare series, and by default the region's default image. */
function chooseSystem(region: Region, wanted: string | null): System {
  const names = region.state.images.map((image) => image.name).toSorted();
  const name =
    wanted ||
    `${String(region.state.config["default_osystem"])}/${String(region.state.config["default_distro_series"])}`;
  const image = region.state.images.find((one) => one.name === name || one.name.split("/")[1] === name);
  if (image === undefined) throw badFields({ distro_series: [notOneOf(name, "distro_series", ["", ...names])] });
  image.lastDeployed = region.now();
  const [osystem = "", series = ""] = image.name.split("/");
  return { osystem, series, kernel: image.architecture.split("/")[1] ?? "" };
}

function requireNetwork(machine: Machine): void {
  const usable = machine.interfaces.some((nic) =>
    nic.links.some((link) => link.mode !== "link_up" && link.subnetId !== null),
  );
  if (!usable) throw badFields({ network: ["Node must be configured to use a network"] });
}

function hwSyncSeconds(region: Region): number {
  const text = String(region.state.config["hardware_sync_interval"]);
  const units: Record<string, number> = { h: 3600, m: 60, s: 1 };
  return [...text.matchAll(/(\d+)([hms])/g)].reduce(
    (sum, [, count, unit]) => sum + Number(count) * (units[unit ?? ""] ?? 0),
    0,
  );
}

export function setHwSync(region: Region, machine: Machine, enabled: boolean): void {
  machine.enableHwSync = enabled;
  if (enabled) machine.syncInterval ??= hwSyncSeconds(region);
}

/** Allocates a machine to a user, and gives the machine a copy of the storage layout for this user. */
export function acquire(region: Region, machine: Machine, user: User, agentName: string | null): void {
  region.setOwner(machine, user.username);
  machine.agentName = agentName ?? "";
  machine.ownedStorage = true;
  region.changeStatus(machine, STATUS.allocated);
}

/** In MAAS 3.5, a deploy call whose power-on fails leaves the machine Allocated to the caller. */
async function requireBmcOrFallBack(
  region: Region,
  machine: Machine,
  user: User,
  request: DeployRequest,
): Promise<void> {
  try {
    await requireBmc(region, machine);
  } catch (error) {
    if (machine.status === STATUS.ready) acquire(region, machine, user, request.agentName);
    throw error;
  }
}

export async function deploy(region: Region, machine: Machine, user: User, request: DeployRequest): Promise<void> {
  if (!allows("deploy", machine.status))
    throw stateConflict(`Can't deploy a machine that is in the '${STATUS_LABEL[machine.status]}' state`);
  if (machine.owner !== null && machine.owner !== user.username)
    throw stateConflict(`No machine with system ID ${machine.systemId} available.`);
  const system = chooseSystem(region, request.distroSeries);
  requireNetwork(machine);
  // In MAAS 3.5 a deploy call fails when the power-on fails.
  if (region.version === "3.5.12") await requireBmcOrFallBack(region, machine, user, request);
  if (!allows("deploy", machine.status))
    throw stateConflict(`Can't deploy a machine that is in the '${STATUS_LABEL[machine.status]}' state`);
  region.count(machine.systemId, "deploy");
  region.userEvent(machine, user, "User starting deployment", request.comment);
  if (machine.status === STATUS.ready) acquire(region, machine, user, request.agentName);
  machine.osystem = system.osystem;
  machine.distroSeries = system.series;
  machine.hweKernel = request.hweKernel || system.kernel;
  machine.userData = request.userData;
  machine.ephemeralDeploy = request.ephemeralDeploy;
  machine.enableKernelCrashDump = request.enableKernelCrashDump;
  machine.errorDescription = "";
  machine.minHweKernel ??= "";
  setHwSync(region, machine, request.enableHwSync);
  assignAutoAddresses(region, machine);
  machine.token ??= { token_key: newKey(18), token_secret: newKey(32), consumer_key: newKey(18) };
  region.changeStatus(machine, STATUS.deploying);
  region.event(machine, "INFO", "Deploying");
  // In an ephemeral deploy, and on a machine without a disk, the system runs from memory, so MAAS installs nothing on a disk.
  if (!request.ephemeralDeploy && machine.blockDevices.length > 0)
    startScriptSet(region, machine, "installation", [{ name: "/tmp/install.log", parameters: {} }]);
  startInstall(region, machine);
}

function startInstall(region: Region, machine: Machine): void {
  const bmc = bmcOf(region, machine);
  if (bmc.reach === "failed") {
    region.schedule("deploy_failed", machine, region.timings.bmcTimeout, { reason: bmc.message });
    return;
  }
  region.schedule("power_on", machine, region.timings.power);
  region.schedule("deploy_installed", machine, region.timings.install);
}

/**
 * The simulated region calls `finishInstall` when a machine's installer ends. When the installer has ended, the simulated server reboots into the
 * installed system, unless the test has planned a failure.
 */
export function finishInstall(region: Region, machine: Machine): void {
  if (machine.status !== STATUS.deploying) return;
  const outcome = planOf(region, machine)?.deploy.shift() ?? "pass";
  if (outcome === "hang") return;
  if (outcome === "install_failure") {
    endScriptSet(region, machine, "installation", SCRIPT_STATUS.failed);
    region.event(machine, "ERROR", "Node installation failure", "'curtin' curtin command install", "");
    failDeploy(region, machine, "Installation failed (refer to the installation log for more information).");
    return;
  }
  endScriptSet(region, machine, "installation", SCRIPT_STATUS.passed);
  for (const step of ["Configuring storage", "Installing OS", "Configuring OS", "Rebooting"])
    region.event(machine, "INFO", step);
  if (outcome === "datasource_failure") {
    const old = region.version === "3.5.12";
    // MAAS 3.5 waits for an installed system's report as long as its setting `node_timeout` says, and MAAS 3.7 twice as long. The simulator's
    // `deployTimeout` is the waiting time of MAAS 3.7.
    const reason = old ? "Node operation 'Deploying' timed out after 30 minutes." : "time-out during deployment";
    region.schedule("deploy_failed", machine, region.timings.deployTimeout / (old ? 2 : 1), { reason });
    return;
  }
  region.schedule("deploy_booted", machine, region.timings.boot);
}

/** The simulated region calls `bootInstalled` when a machine's installed system starts. */
export function bootInstalled(region: Region, machine: Machine): void {
  if (machine.status !== STATUS.deploying) return;
  if (region.hooks.boot === null) endDeployment(region, machine);
  else region.hooks.boot(machine);
}

/** Ends a machine's deployment: when the simulated host has fetched its user data, or at once if the simulator plays no hosts. */
export function endDeployment(region: Region, machine: Machine): void {
  if (machine.status !== STATUS.deploying) return;
  setPower(region, machine, "on");
  region.changeStatus(machine, STATUS.deployed);
  machine.deployedAt = region.now();
  if (machine.enableHwSync) machine.lastSync = region.now();
  region.event(machine, "INFO", "Deployed");
  region.changed();
}

export function failDeploy(region: Region, machine: Machine, reason: string): void {
  if (machine.status !== STATUS.deploying) return;
  region.changeStatus(machine, STATUS.failed_deployment);
  machine.errorDescription = reason;
  region.event(machine, "ERROR", "Marking node failed", reason, "mark_failed");
}
