import type { Machine, User } from "../state/model.ts";
import { SCRIPT_STATUS } from "../state/model.ts";
import { allows, isStatus, mayChange, STATUS, STATUS_LABEL } from "../state/statuses.ts";
import { freeAutoAddresses } from "./links.ts";
import { bmcOf, requireBmc, type StopMode, setPower, startPowerOff, startPowerOn } from "./power.ts";
import { badFields, forbidden, stateConflict } from "./refusal.ts";
import type { Region } from "./region.ts";
import { leaveTesting } from "./release.ts";
import { endScriptSet, pickScripts, startScriptSet } from "./scripts.ts";

/** Only the owner of a machine may mark it broken, so nobody can mark a machine without an owner. */
export function markBroken(region: Region, machine: Machine, user: User, comment: string | null): void {
  if (machine.owner !== user.username) throw forbidden();
  if (!mayChange(machine.status, STATUS.broken))
    throw stateConflict(`Invalid transition: ${STATUS_LABEL[machine.status]} -> Broken.`);
  region.count(machine.systemId, "mark_broken");
  region.userEvent(machine, user, "User marking node broken", comment);
  const wasDeployed = machine.status === STATUS.deployed;
  region.cancelJobs(machine);
  if (allows("release", machine.status)) {
    region.event(machine, "INFO", "Releasing");
    if (machine.powerState === "on") startPowerOff(region, machine);
    else region.event(machine, "INFO", "Released");
    machine.osystem = "";
    machine.distroSeries = "";
    machine.hweKernel = null;
    machine.enableHwSync = false;
    machine.syncInterval = null;
    machine.lastSync = null;
    machine.ownerData = {};
    machine.ownedStorage = false;
    machine.scriptSets.installation = null;
    freeAutoAddresses(machine);
    region.hooks.halt(machine, false);
  }
  region.changeStatus(machine, STATUS.broken);
  machine.errorDescription = comment ?? "";
  if (region.version === "3.5.12" || !wasDeployed) region.setOwner(machine, null);
}

export function markFixed(region: Region, machine: Machine, user: User, comment: string | null): void {
  if (machine.status !== STATUS.broken) throw stateConflict("Can't mark a non-broken node as 'Ready'.");
  region.userEvent(machine, user, "User marking node fixed", comment);
  region.settle(machine);
  machine.errorDescription = "";
  const back = machine.previousStatus === STATUS.deployed ? STATUS.deployed : STATUS.ready;
  region.changeStatus(machine, back);
  if (back === STATUS.ready) region.setOwner(machine, null);
}

export function overrideFailedTesting(region: Region, machine: Machine, user: User, comment: string | null): void {
  if (machine.status !== STATUS.failed_testing)
    throw stateConflict("Unable to override node status. Node is not in 'Failed testing' status.");
  region.userEvent(machine, user, "User overrode 'Failed testing' status", comment);
  machine.errorDescription = "";
  const back = machine.osystem === "" ? STATUS.ready : STATUS.deployed;
  region.changeStatus(machine, back);
  if (back === STATUS.ready) region.setOwner(machine, null);
}

export function lock(region: Region, machine: Machine, user: User, comment: string | null): void {
  if (machine.locked) throw stateConflict("Machine is already locked");
  if (!allows("lock", machine.status)) throw stateConflict("Can't lock, node is not deployed or deploying");
  region.userEvent(machine, user, "User locking node", comment);
  machine.locked = true;
}

export function unlock(region: Region, machine: Machine, user: User, comment: string | null): void {
  if (!machine.locked) throw stateConflict("Machine is not locked");
  region.userEvent(machine, user, "User unlocking node", comment);
  machine.locked = false;
}

export async function powerOn(
  region: Region,
  machine: Machine,
  user: User,
  comment: string | null,
  userData: string | null,
): Promise<void> {
  if (machine.owner === null) throw stateConflict("Can't start node: it hasn't been allocated.");
  machine.userData = userData;
  // As in MAAS, the event about a power action comes before the call of the BMC, and appears even if the BMC fails.
  region.userEvent(machine, user, "User powering up node", comment);
  await requireBmc(region, machine);
  startPowerOn(region, machine);
}

/** `powerOff` returns false when the simulated region cannot control the machine's power. */
export async function powerOff(
  region: Region,
  machine: Machine,
  user: User,
  { comment, mode }: { readonly comment: string | null; readonly mode: StopMode },
): Promise<boolean> {
  region.userEvent(machine, user, "User powering down node", comment);
  const bmc = await requireBmc(region, machine);
  if (bmc.reach === "manual") return false;
  startPowerOff(region, machine, mode);
  return true;
}

export async function queryPower(region: Region, machine: Machine): Promise<string> {
  region.count(machine.systemId, "query_power_state");
  if (machine.powerType === "manual") return "unknown";
  const bmc = bmcOf(region, machine);
  if (bmc.reach === "failed") {
    region.event(machine, "WARNING", "Failed to query node's BMC", bmc.message);
    machine.powerState = "error";
    return "error";
  }
  if (bmc.reach === "ok") machine.powerState = bmc.box.power;
  return machine.powerState;
}

export async function startTests(
  region: Region,
  machine: Machine,
  user: User,
  scripts: readonly string[],
): Promise<void> {
  if (!allows("test", machine.status))
    throw badFields({ __all__: ["Test is not available because of the current state of the node."] });
  const picked = pickScripts("testing", scripts.length === 0 ? ["commissioning"] : scripts);
  if ("unknown" in picked)
    throw badFields({
      testing_scripts: [`Select a valid choice. ${picked.unknown} is not one of the available choices.`],
    });
  await requireBmc(region, machine);
  region.userEvent(machine, user, "User starting node testing", null);
  startScriptSet(region, machine, "testing", picked);
  if (machine.owner === null) region.setOwner(machine, user.username);
  region.changeStatus(machine, STATUS.testing);
  region.event(machine, "INFO", "Testing");
  region.schedule("power_on", machine, region.timings.power);
  region.schedule("tested", machine, region.timings.testing);
}

export function finishTests(region: Region, machine: Machine, backTo: string | undefined): void {
  if (machine.status !== STATUS.testing) return;
  endScriptSet(region, machine, "testing", SCRIPT_STATUS.passed);
  const code = Number(backTo);
  if (isStatus(code)) machine.previousStatus = code;
  if (leaveTesting(region, machine) === STATUS.ready) region.event(machine, "INFO", "Ready");
}

export async function enterRescue(region: Region, machine: Machine, user: User): Promise<void> {
  if (!allows("rescue", machine.status))
    throw stateConflict(`Cannot enter rescue mode in current state: ${STATUS_LABEL[machine.status]}.`);
  await requireBmc(region, machine);
  region.userEvent(machine, user, "User starting rescue mode", null);
  if (machine.owner === null) region.setOwner(machine, user.username);
  const before = machine.status;
  region.changeStatus(machine, STATUS.entering_rescue_mode);
  region.event(machine, "INFO", "Entering rescue mode");
  region.schedule("rescue_entered", machine, region.timings.rescue, { back_to: String(before) });
}

export async function leaveRescue(region: Region, machine: Machine, user: User): Promise<void> {
  if (!allows("exitRescue", machine.status))
    throw stateConflict(`Cannot exit rescue mode in current state: ${STATUS_LABEL[machine.status]}.`);
  await requireBmc(region, machine);
  region.userEvent(machine, user, "User stopping rescue mode", null);
  const entered = region.state.jobs.find((job) => job.systemId === machine.systemId && job.kind === "rescue_entered");
  const backTo = entered?.data["back_to"] ?? String(machine.previousStatus);
  region.cancelJobs(machine, ["rescue_entered"]);
  region.changeStatus(machine, STATUS.exiting_rescue_mode);
  region.schedule("rescue_left", machine, region.timings.rescue, { back_to: backTo });
}

export function finishLeavingRescue(region: Region, machine: Machine, backTo: string | undefined): void {
  const code = Number(backTo);
  if (machine.status !== STATUS.exiting_rescue_mode || !isStatus(code)) return;
  setPower(region, machine, code === STATUS.deployed ? "on" : "off");
  region.changeStatus(machine, code);
  if (code === STATUS.ready) region.setOwner(machine, null);
  region.event(machine, "INFO", "Exited rescue mode");
}
