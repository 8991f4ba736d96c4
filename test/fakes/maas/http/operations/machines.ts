import { commission } from "../../engine/commission.ts";
import { acquire } from "../../engine/deploy.ts";
import { badFields, Refusal, stateConflict } from "../../engine/refusal.ts";
import { release } from "../../engine/release.ts";
import type { Machine } from "../../state/model.ts";
import { allows, isStatusName, STATUS, STATUS_LABEL } from "../../state/statuses.ts";
import { viewMachine } from "../../view/machine.ts";
import type { Call, Fields, Reply } from "../call.ts";
import { json } from "../call.ts";
import { mayView, requireAdmin } from "./access.ts";
import { machineByForm } from "./machine-form.ts";

type Match = (machine: Machine, value: string) => boolean;

/** The query filters of MAAS's list of machines. MAAS ignores a filter with an unknown name. */
const FILTERS: Readonly<Record<string, Match>> = {
  id: (machine, value) => machine.systemId === value,
  system_id: (machine, value) => machine.systemId === value,
  hostname: (machine, value) => machine.hostname === value,
  mac_address: (machine, value) => machine.interfaces.some((nic) => nic.macAddress === value.toLowerCase()),
  domain: (_, value) => value === "maas",
  zone: (machine, value) => machine.zone === value,
  pool: (machine, value) => machine.pool === value,
  agent_name: (machine, value) => machine.agentName === value,
  status: (machine, value) => isStatusName(value) && STATUS[value] === machine.status,
  power_state: (machine, value) => machine.powerState === value,
  owner: (machine, value) => machine.owner === value,
  arch: (machine, value) => machine.architecture === value || machine.architecture.startsWith(`${value}/`),
  tags: (machine, value) => machine.tags.includes(value),
};

function checkFilters(query: Fields): void {
  for (const value of query.all("status")) {
    if (!isStatusName(value))
      throw badFields({ status: [`Select a valid choice. ${value} is not one of the available choices.`] });
  }
}

function selected(call: Call): Machine[] {
  checkFilters(call.query);
  const active = call.query.entries().flatMap(([name, values]) => {
    const positive = FILTERS[name];
    if (positive !== undefined) return [(machine: Machine) => values.some((value) => positive(machine, value))];
    const negative = FILTERS[name.replace(/^not_(in_)?/, "")];
    return name.startsWith("not_") && negative !== undefined
      ? [(machine: Machine) => !values.some((value) => negative(machine, value))]
      : [];
  });
  return call.region.state.machines
    .filter((machine) => mayView(call.user, machine) && active.every((matches) => matches(machine)))
    .toSorted((a, b) => a.id - b.id);
}

/** The simulator sends a list of more machines than `LONG_LIST` in pieces, because one string cannot hold ten thousand machines. */
const LONG_LIST = 500;

export function list(call: Call): Reply {
  const machines = selected(call);
  const view = (machine: Machine) => viewMachine(call.region, machine);
  return machines.length <= LONG_LIST
    ? json(machines.map(view))
    : { ...json([]), body: pieces(machines, (machine) => JSON.stringify(view(machine))) };
}

function* pieces<T>(all: readonly T[], textOf: (one: T) => string): Generator<string> {
  let before = "[";
  for (const one of all) {
    yield before + textOf(one);
    before = ", ";
  }
  yield "]";
}

export function listPowerParameters(call: Call): Reply {
  requireAdmin(call);
  return json(Object.fromEntries(selected(call).map((machine) => [machine.systemId, machine.powerParameters])));
}

export function listAllocated(call: Call): Reply {
  const mine = selected(call).filter(
    (machine) => machine.owner === call.user.username && machine.status === STATUS.allocated,
  );
  return json(mine.map((machine) => viewMachine(call.region, machine)));
}

export function isRegistered(call: Call): Reply {
  const mac = call.query.required("mac_address").toLowerCase();
  return json(call.region.state.machines.some((machine) => machine.interfaces.some((nic) => nic.macAddress === mac)));
}

/** As in MAAS, a machine that an administrator creates is also commissioned, unless the form sets `commission` to false. */
export async function create(call: Call): Promise<Reply> {
  const machine = machineByForm(call.region, call.data);
  if (call.user.isSuperuser && call.data.flag("commission", true)) {
    const request = {
      skipNetworking: call.data.flag("skip_networking", false),
      skipStorage: call.data.flag("skip_storage", false),
      commissioningScripts: [],
      testingScripts: call.data.words("testing_scripts"),
    };
    try {
      await commission(call.region, machine, call.user, request);
    } catch (error) {
      // When a new machine's commissioning options are invalid, MAAS ignores the error and leaves the machine New. When the new machine's BMC fails,
      // the API call that creates the machine fails.
      if (!(error instanceof Refusal) || error.status !== 400) throw error;
    }
  }
  return json(viewMachine(call.region, machine));
}

/** Carries out the operation `accept`: starts a commissioning run with the default options for each New machine. */
export async function accept(call: Call): Promise<Reply> {
  requireAdmin(call);
  const ids = call.form.all("machines");
  const unknown = ids.filter((id) => call.region.findMachine(id) === undefined);
  if (unknown.length > 0) throw new Refusal(400, `Unknown machine(s): ${unknown.join(", ")}.`);
  const machines = ids.map((id) => call.region.machine(id));
  const wrong = machines.find(
    (machine) =>
      machine.status !== STATUS.new && machine.status !== STATUS.ready && machine.status !== STATUS.commissioning,
  );
  if (wrong !== undefined)
    throw stateConflict(
      `Cannot accept node enlistment: node ${wrong.systemId} is in state ${STATUS_LABEL[wrong.status]}.`,
    );
  const moved = machines.filter((machine) => machine.status === STATUS.new);
  for (const machine of moved)
    await commission(call.region, machine, call.user, {
      skipNetworking: false,
      skipStorage: false,
      commissioningScripts: [],
      testingScripts: [],
    });
  return json(moved.map((machine) => viewMachine(call.region, machine)));
}

export function allocate(call: Call): Reply {
  const systemId = call.form.get("system_id");
  const constraints = ["name", "hostname", "pool", "zone", "tags", "arch"].filter((name) => call.form.has(name));
  const free = call.region.state.machines.filter((machine) => machine.status === STATUS.ready && !machine.locked);
  const chosen = free.find(
    (machine) =>
      (systemId === null || machine.systemId === systemId) &&
      constraints.every(
        (name) => FILTERS[name === "name" ? "hostname" : name]?.(machine, call.form.get(name) ?? "") === true,
      ),
  );
  if (chosen === undefined) {
    if (systemId !== null) throw stateConflict(`No machine with system ID ${systemId} available.`);
    const words = constraints.map((name) => `('${name}', ['${call.form.get(name) ?? ""}'])`).join(", ");
    const resolved = constraints.map((name) => `${name}=${call.form.get(name) ?? ""}`).join(" ");
    throw stateConflict(
      constraints.length === 0
        ? "No machine available."
        : `No available machine matches constraints: [${words}] (resolved to "${resolved}")`,
    );
  }
  if (!call.form.flag("dry_run", false)) {
    call.region.userEvent(chosen, call.user, "User acquiring node", call.form.get("comment"));
    acquire(call.region, chosen, call.user, call.form.get("agent_name"));
  }
  return json({ ...viewMachine(call.region, chosen), constraints_by_type: {} });
}

/** Releases all given machines, or no machine if the status of one machine does not allow a release. */
export function releaseMany(call: Call): Reply {
  const machines = call.form.all("machines").map((id) => {
    const machine = call.region.findMachine(id);
    if (machine === undefined) throw new Refusal(400, `Unknown machine(s): ${id}.`);
    return machine;
  });
  const wrong = machines.filter(
    (machine) => !allows("release", machine.status) && !allows("releaseNoop", machine.status),
  );
  if (wrong.length > 0)
    throw stateConflict(
      `Machine(s) cannot be released in their current state: ${wrong.map((machine) => `${machine.systemId} ('${STATUS_LABEL[machine.status]}')`).join(", ")}.`,
    );
  const released = machines.filter((machine) => allows("release", machine.status));
  for (const machine of released)
    release(call.region, machine, call.user, {
      erase: false,
      secure: false,
      quick: false,
      comment: call.form.get("comment"),
    });
  return json(released.map((machine) => machine.systemId));
}
