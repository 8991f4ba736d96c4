import { commission } from "../../engine/commission.ts";
import { deploy, setHwSync } from "../../engine/deploy.ts";
import {
  enterRescue,
  leaveRescue,
  lock,
  markBroken,
  markFixed,
  overrideFailedTesting,
  powerOff,
  powerOn,
  queryPower,
  startTests,
  unlock,
} from "../../engine/marks.ts";
import { Refusal, stateConflict } from "../../engine/refusal.ts";
import { abort, release } from "../../engine/release.ts";
import type { Machine } from "../../state/model.ts";
import { STATUS } from "../../state/statuses.ts";
import { readBefore, viewMachine, viewMachineAfter } from "../../view/machine.ts";
import type { Call, Reply } from "../call.ts";
import { json } from "../call.ts";
import { administered, adminRead, editable, viewable } from "./access.ts";
import { updateByForm } from "./machine-form.ts";

function show(call: Call, machine: Machine): Reply {
  return json(viewMachine(call.region, machine));
}

export function read(call: Call): Reply {
  return show(call, viewable(call));
}

export function update(call: Call): Reply {
  const machine = administered(call);
  updateByForm(call.region, machine, call.data);
  if (call.data.has("enable_hw_sync"))
    setHwSync(call.region, machine, call.data.flag("enable_hw_sync", machine.enableHwSync));
  return show(call, machine);
}

/**
 * Deletes a machine in any status and leaves the power of its server as it is. The server of a deleted machine may enlist later, as a machine with a
 * new id.
 */
export function remove(call: Call): Reply {
  const machine = administered(call);
  const { region } = call;
  region.cancelJobs(machine);
  region.hooks.halt(machine, true);
  region.state.machines = region.state.machines.filter((one) => one !== machine);
  region.state.events = region.state.events.filter((event) => event.systemId !== machine.systemId);
  return { status: 204, body: "", contentType: "text/plain" };
}

export function powerParameters(call: Call): Reply {
  return json(adminRead(call).powerParameters);
}

export async function queryPowerState(call: Call): Promise<Reply> {
  return json({ state: await queryPower(call.region, viewable(call)) });
}

export function getToken(call: Call): Reply {
  return json(editable(call).token);
}

export async function startCommission(call: Call): Promise<Reply> {
  const machine = administered(call);
  const { form } = call;
  await commission(call.region, machine, call.user, {
    skipNetworking: form.flag("skip_networking", false),
    skipStorage: form.flag("skip_storage", false),
    commissioningScripts: form.words("commissioning_scripts"),
    testingScripts: form.words("testing_scripts"),
  });
  return show(call, machine);
}

export async function startDeploy(call: Call): Promise<Reply> {
  const machine = editableOrFree(call);
  const before = readBefore(call.region, machine);
  const { form } = call;
  await deploy(call.region, machine, call.user, {
    distroSeries: form.get("distro_series"),
    hweKernel: form.get("hwe_kernel"),
    userData: form.get("user_data"),
    enableHwSync: form.flag("enable_hw_sync", false),
    ephemeralDeploy: form.flag("ephemeral_deploy", false),
    enableKernelCrashDump: form.flag("enable_kernel_crash_dump", false),
    agentName: form.get("agent_name"),
    comment: form.get("comment"),
  });
  return json(viewMachineAfter(call.region, machine, before, "stale"));
}

/** Returns the machine of a deploy call, which every user may make for a machine without an owner. */
function editableOrFree(call: Call): Machine {
  const machine = viewable(call);
  return machine.owner === null && !machine.locked ? machine : editable(call);
}

export function startRelease(call: Call): Reply {
  const machine = editable(call);
  const before = readBefore(call.region, machine);
  release(call.region, machine, call.user, {
    erase: call.form.flag("erase", false),
    secure: call.form.flag("secure_erase", false),
    quick: call.form.flag("quick_erase", false),
    comment: call.form.get("comment"),
  });
  return json(viewMachineAfter(call.region, machine, before, "stale"));
}

export function startAbort(call: Call): Reply {
  const machine = editable(call);
  abort(call.region, machine, call.user, call.form.get("comment"));
  return show(call, machine);
}

export function broken(call: Call): Reply {
  const machine = editable(call);
  const before = readBefore(call.region, machine);
  markBroken(call.region, machine, call.user, call.form.get("comment"));
  // For a machine that was Deployed, the answer to `mark_broken` still shows the old boot disk and network.
  if (before.status !== STATUS.deployed) return show(call, machine);
  const view = viewMachineAfter(call.region, machine, before, "stale");
  return json(
    call.region.version === "3.5.12" ? view : { ...view, current_installation_result_id: before.installationId },
  );
}

export function fixed(call: Call): Reply {
  const machine = administered(call);
  const before = readBefore(call.region, machine);
  markFixed(call.region, machine, call.user, call.form.get("comment"));
  return json(viewMachineAfter(call.region, machine, before, "fresh"));
}

export function overrideTesting(call: Call): Reply {
  const machine = administered(call);
  overrideFailedTesting(call.region, machine, call.user, call.form.get("comment"));
  return show(call, machine);
}

export function lockMachine(call: Call): Reply {
  const machine = adminRead(call);
  lock(call.region, machine, call.user, call.form.get("comment"));
  return show(call, machine);
}

export function unlockMachine(call: Call): Reply {
  const machine = adminRead(call);
  unlock(call.region, machine, call.user, call.form.get("comment"));
  return show(call, machine);
}

export async function startPowerOn(call: Call): Promise<Reply> {
  const machine = editableOrFree(call);
  await powerOn(call.region, machine, call.user, call.form.get("comment"), call.form.get("user_data"));
  return show(call, machine);
}

export async function startPowerOff(call: Call): Promise<Reply> {
  const machine = editable(call);
  // Every other value of `stop_mode` than `soft` is a hard stop, as in MAAS.
  const mode = call.form.get("stop_mode") === "soft" ? "soft" : "hard";
  const done = await powerOff(call.region, machine, call.user, { comment: call.form.get("comment"), mode });
  return done ? show(call, machine) : json(null);
}

export async function test(call: Call): Promise<Reply> {
  const machine = administered(call);
  const before = readBefore(call.region, machine);
  await startTests(call.region, machine, call.user, call.form.words("testing_scripts"));
  return json(viewMachineAfter(call.region, machine, before, "fresh"));
}

export async function rescue(call: Call): Promise<Reply> {
  const machine = administered(call);
  await enterRescue(call.region, machine, call.user);
  return show(call, machine);
}

export async function exitRescue(call: Call): Promise<Reply> {
  const machine = administered(call);
  await leaveRescue(call.region, machine, call.user);
  return show(call, machine);
}

export function annotate(call: Call): Reply {
  const machine = viewable(call);
  if (machine.owner !== call.user.username)
    throw stateConflict("Cannot set workload annotation: it hasn't been acquired.");
  for (const [name, values] of call.form.entries()) {
    const value = values.at(-1) ?? "";
    if (value === "") delete machine.ownerData[name];
    else machine.ownerData[name] = value;
  }
  return show(call, machine);
}

/** Answers the operation `details` of a machine with two empty documents in BSON, which no client may parse as JSON. */
export function details(call: Call): Reply {
  viewable(call);
  const entry = (name: string): Buffer =>
    Buffer.concat([Buffer.from([5]), Buffer.from(`${name}\0`), Buffer.from([0, 0, 0, 0, 0])]);
  const body = Buffer.concat([entry("lldp"), entry("lshw")]);
  const length = Buffer.alloc(4);
  length.writeInt32LE(body.length + 5);
  return { status: 200, body: Buffer.concat([length, body, Buffer.from([0])]), contentType: "application/bson" };
}

export function curtinConfig(call: Call): Reply {
  const machine = viewable(call);
  const deploying =
    machine.status === STATUS.deploying ||
    machine.status === STATUS.deployed ||
    machine.status === STATUS.failed_deployment;
  if (!deploying) throw new Refusal(400, `Machine ${machine.hostname} is not in a deployment state.`);
  return { status: 200, body: "# the simulator installs nothing\n", contentType: "text/plain" };
}
