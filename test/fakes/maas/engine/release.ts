import type { Machine, User } from "../state/model.ts";
import { SCRIPT_STATUS } from "../state/model.ts";
import type { Status } from "../state/statuses.ts";
import { allows, STATUS, STATUS_LABEL } from "../state/statuses.ts";
import { freeAutoAddresses } from "./links.ts";
import { bmcOf, setPower } from "./power.ts";
import { stateConflict } from "./refusal.ts";
import type { Region } from "./region.ts";
import { commissioningPassed, endScriptSet } from "./scripts.ts";
import { endWipe, startWipe, type WipeKind } from "./wipe.ts";

export interface ReleaseRequest extends WipeKind {
  erase: boolean;
  comment: string | null;
}

/** A release clears the machine's fields about its deployment before it clears the owner. */
function forgetDeployment(region: Region, machine: Machine): void {
  machine.agentName = "";
  machine.osystem = "";
  machine.distroSeries = "";
  machine.hweKernel = null;
  machine.ephemeralDeploy = false;
  machine.enableHwSync = false;
  machine.syncInterval = null;
  machine.lastSync = null;
  machine.ownerData = {};
  machine.userData = null;
  machine.ownedStorage = false;
  machine.errorDescription = "";
  machine.deployedAt = null;
  if (region.version === "3.5.12") machine.scriptSets.installation = null;
  freeAutoAddresses(machine);
}

/** The last step of a release sets the machine's status to Ready, or to New when the machine never passed commissioning. */
export function finishRelease(region: Region, machine: Machine): void {
  if (machine.status === STATUS.ready) return;
  setPower(region, machine, "off");
  const passed = commissioningPassed(machine);
  // If a test or the control API has changed the machine's status since the release began, the machine becomes Releasing once more. In MAAS a release
  // reaches Ready or New only from the status Releasing.
  if (machine.status !== STATUS.releasing) region.changeStatus(machine, STATUS.releasing);
  region.changeStatus(machine, passed ? STATUS.ready : STATUS.new);
  region.setOwner(machine, null);
  machine.locked = false;
  region.event(machine, "INFO", "Released");
  region.changed();
}

function beginRelease(region: Region, machine: Machine): void {
  region.cancelJobs(machine);
  region.hooks.halt(machine, true);
  const bmc = bmcOf(region, machine);
  forgetDeployment(region, machine);
  region.changeStatus(machine, STATUS.releasing);
  region.event(machine, "INFO", "Releasing");
  if (bmc.reach === "manual" || machine.powerState === "off") {
    finishRelease(region, machine);
    return;
  }
  if (bmc.reach === "failed") {
    region.schedule("released", machine, 300, { failed: bmc.message });
    return;
  }
  region.count(machine.systemId, "power_off");
  region.schedule("released", machine, region.timings.release);
}

export function release(region: Region, machine: Machine, user: User, request: ReleaseRequest): void {
  if (allows("releaseNoop", machine.status)) return;
  if (!allows("release", machine.status))
    throw stateConflict(`Machine cannot be released in its current state ('${STATUS_LABEL[machine.status]}').`);
  region.count(machine.systemId, "release");
  const { config } = region.state;
  const always = config["enable_disk_erasing_on_release"] === true;
  if (!request.erase && !always) {
    region.userEvent(machine, user, "User releasing node", request.comment);
    beginRelease(region, machine);
    return;
  }
  region.cancelJobs(machine);
  region.hooks.halt(machine, true);
  // If the region's configuration erases disks at each release, a request for an erase counts as a second release script. A machine whose release
  // runs several release scripts has the status Releasing in place of Disk erasing.
  const ofRegion = {
    secure: config["disk_erase_with_secure_erase"] === true,
    quick: config["disk_erase_with_quick_erase"] === true,
  };
  startWipe(region, machine, always ? ofRegion : request);
  const several = request.erase && always;
  region.userEvent(machine, user, several ? "User releasing node" : "User erasing disk", request.comment);
  region.changeStatus(machine, several ? STATUS.releasing : STATUS.disk_erasing);
  region.schedule("erased", machine, region.timings.erase);
}

export function finishErase(region: Region, machine: Machine): void {
  if (machine.status === STATUS.releasing) endWipe(region, machine);
  else if (machine.status !== STATUS.disk_erasing) return;
  const ended = machine.status === STATUS.releasing ? "Release scripts executed successfully." : "Disks erased";
  region.event(machine, "INFO", ended);
  // At the end of an erase, MAAS itself releases the machine, so the event of the release names no user and no comment.
  region.event(machine, "DEBUG", "User releasing node", "");
  beginRelease(region, machine);
}

export function releaseTimedOut(region: Region, machine: Machine, reason: string): void {
  if (machine.status !== STATUS.releasing) return;
  region.changeStatus(machine, STATUS.failed_releasing);
  machine.errorDescription = reason;
  region.event(machine, "ERROR", "Marking node failed", reason, "mark_failed");
}

const ABORTED: Readonly<Partial<Record<Status, string>>> = {
  [STATUS.commissioning]: "Aborted commissioning",
  [STATUS.deploying]: "Aborted deployment",
  [STATUS.disk_erasing]: "Aborted disk erasing",
};

/** The answer to an abort call shows the machine's old status, because the job `aborted` changes the status after the answer. */
export function abort(region: Region, machine: Machine, user: User, comment: string | null): void {
  if (!allows("abort", machine.status))
    throw stateConflict(
      `Cannot abort in current state: node ${machine.systemId} is in state ${STATUS_LABEL[machine.status]}.`,
    );
  region.count(machine.systemId, "abort");
  region.userEvent(machine, user, "User aborting operation", comment);
  region.cancelJobs(machine);
  if (machine.status === STATUS.commissioning) {
    endScriptSet(region, machine, "commissioning", SCRIPT_STATUS.aborted);
    region.setOwner(machine, null);
  }
  if (machine.status === STATUS.testing || machine.status === STATUS.commissioning)
    endScriptSet(region, machine, "testing", SCRIPT_STATUS.aborted);
  if (machine.status === STATUS.deploying) machine.scriptSets.installation = null;
  region.event(machine, "INFO", ABORTED[machine.status] ?? "Aborted testing");
  region.schedule("aborted", machine, region.timings.abort, {
    from: String(machine.status),
    back_to: String(machine.previousStatus),
  });
}

export function finishAbort(region: Region, machine: Machine, from: number): void {
  if (machine.status !== from) return;
  setPower(region, machine, "off");
  switch (machine.status) {
    case STATUS.commissioning:
      region.changeStatus(machine, STATUS.new);
      return;
    case STATUS.deploying:
      region.changeStatus(machine, STATUS.allocated);
      return;
    case STATUS.disk_erasing:
      region.changeStatus(machine, STATUS.failed_disk_erasing);
      return;
    default:
      leaveTesting(region, machine);
  }
}

/** Sets a machine's status back to the status before the tests. If the tests followed a commissioning run, the machine becomes Ready. */
export function leaveTesting(region: Region, machine: Machine): Status {
  const back = machine.previousStatus === STATUS.commissioning ? STATUS.ready : machine.previousStatus;
  if (back === STATUS.ready || back === STATUS.new) {
    setPower(region, machine, "off");
    region.setOwner(machine, null);
  }
  region.changeStatus(machine, back);
  return back;
}
