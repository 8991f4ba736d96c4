import type { Machine, User } from "../state/model.ts";
import { SCRIPT_STATUS } from "../state/model.ts";
import { allows, STATUS } from "../state/statuses.ts";
import { learnHardware } from "./inventory.ts";
import { clearLinks } from "./links.ts";
import { planOf } from "./plans.ts";
import { requireBmc, setPower } from "./power.ts";
import { badFields } from "./refusal.ts";
import type { Region } from "./region.ts";
import type { Script } from "./scripts.ts";
import { endScriptSet, pickScripts, SCRIPTS, startScriptSet } from "./scripts.ts";
import { clearStorage } from "./storage.ts";

export interface CommissionRequest {
  skipNetworking: boolean;
  skipStorage: boolean;
  commissioningScripts: readonly string[];
  testingScripts: readonly string[];
}

function chosen(
  type: Script["type"],
  field: string,
  words: readonly string[],
  defaults: readonly Script[],
): readonly Script[] {
  if (words.length === 0) return defaults;
  const picked = pickScripts(type, words);
  if ("unknown" in picked)
    throw badFields({ [field]: [`Select a valid choice. ${picked.unknown} is not one of the available choices.`] });
  return picked;
}

const DEFAULT_TESTS = SCRIPTS.filter((one) => one.name === "smartctl-validate");
const BUILT_IN = SCRIPTS.filter((one) => one.type === "commissioning");

/** Starts a commissioning run of a machine, unless the machine's BMC fails. */
export async function commission(
  region: Region,
  machine: Machine,
  user: User,
  request: CommissionRequest,
): Promise<void> {
  if (!allows("commission", machine.status))
    throw badFields({ __all__: ["Commission is not available because of the current state of the node."] });
  const scripts = chosen("commissioning", "commissioning_scripts", request.commissioningScripts, BUILT_IN);
  const tests = chosen("testing", "testing_scripts", request.testingScripts, DEFAULT_TESTS);
  await requireBmc(region, machine);
  if (!allows("commission", machine.status))
    throw badFields({ __all__: ["Commission is not available because of the current state of the node."] });
  region.count(machine.systemId, "commission");
  region.userEvent(machine, user, "User starting node commissioning", null);
  machine.skipNetworking = request.skipNetworking;
  machine.skipStorage = request.skipStorage;
  if (!request.skipNetworking) clearLinks(machine);
  if (!request.skipStorage) clearStorage(machine);
  machine.errorDescription = "";
  region.setOwner(machine, user.username);
  region.changeStatus(machine, STATUS.commissioning);
  region.event(machine, "INFO", "Commissioning");
  startScriptSet(region, machine, "commissioning", scripts);
  if (tests.length > 0) startScriptSet(region, machine, "testing", tests);
  else machine.scriptSets.testing = null;
  region.schedule("power_on", machine, region.timings.power);
  region.schedule("commissioned", machine, region.timings.commissioning);
}

export function finishCommissioning(region: Region, machine: Machine): void {
  if (machine.status !== STATUS.commissioning) return;
  const outcome = planOf(region, machine)?.commission.shift() ?? "pass";
  if (outcome === "hang") return;
  if (outcome === "fail") {
    endScriptSet(region, machine, "commissioning", SCRIPT_STATUS.failed);
    endScriptSet(region, machine, "testing", SCRIPT_STATUS.failed);
    region.changeStatus(machine, STATUS.failed_commissioning);
    machine.errorDescription = "commissioning script failed";
    region.event(machine, "ERROR", "Marking node failed", machine.errorDescription, "mark_failed");
    return;
  }
  endScriptSet(region, machine, "commissioning", SCRIPT_STATUS.passed);
  learnHardware(region, machine);
  const tests = machine.scriptSets.testing?.results.length ?? 0;
  if (tests === 0) {
    becomeReady(region, machine);
    return;
  }
  region.changeStatus(machine, STATUS.testing);
  region.event(machine, "INFO", "Testing");
  region.schedule("tested", machine, region.timings.testing, { back_to: String(STATUS.ready) });
}

function becomeReady(region: Region, machine: Machine): void {
  setPower(region, machine, "off");
  region.setOwner(machine, null);
  region.changeStatus(machine, STATUS.ready);
  region.event(machine, "INFO", "Ready");
}
