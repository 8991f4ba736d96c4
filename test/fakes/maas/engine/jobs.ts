import type { Job, Machine } from "../state/model.ts";
import { STATUS } from "../state/statuses.ts";
import { finishCommissioning } from "./commission.ts";
import { bootInstalled, failDeploy, finishInstall } from "./deploy.ts";
import { finishLeavingRescue, finishTests } from "./marks.ts";
import { setPower } from "./power.ts";
import type { Region } from "./region.ts";
import { finishAbort, finishErase, finishRelease, releaseTimedOut } from "./release.ts";

type Handler = (region: Region, machine: Machine, job: Job) => void;

/** The functions that carry out the simulated region's due jobs, by kind of job. */
const HANDLERS: Readonly<Record<Job["kind"], Handler>> = {
  commissioned: finishCommissioning,
  tested: (region, machine, job) => finishTests(region, machine, job.data["back_to"]),
  deploy_installed: finishInstall,
  deploy_booted: bootInstalled,
  deploy_failed: (region, machine, job) =>
    failDeploy(region, machine, job.data["reason"] ?? "time-out during deployment"),
  aborted: (region, machine, job) => finishAbort(region, machine, Number(job.data["from"])),
  released: (region, machine, job) => {
    const failed = job.data["failed"];
    if (machine.status !== STATUS.releasing) return;
    if (failed === undefined) finishRelease(region, machine);
    else releaseTimedOut(region, machine, failed);
  },
  erased: finishErase,
  power_on: (region, machine) => {
    setPower(region, machine, "on");
    if (machine.status === STATUS.deployed) region.hooks.resume(machine);
  },
  power_off: (region, machine) => {
    setPower(region, machine, "off");
    region.hooks.halt(machine, false);
  },
  rescue_entered: (region, machine, job) => {
    if (machine.status !== STATUS.entering_rescue_mode) return;
    region.changeStatus(machine, STATUS.rescue_mode);
    const back = Number(job.data["back_to"]);
    machine.previousStatus = Object.values(STATUS).find((code) => code === back) ?? machine.previousStatus;
  },
  rescue_left: (region, machine, job) => finishLeavingRescue(region, machine, job.data["back_to"]),
};

export function performJob(region: Region, machine: Machine, job: Job): void {
  HANDLERS[job.kind](region, machine, job);
}
