import { setTimeout as sleep } from "node:timers/promises";
import type { Hardware, Machine } from "../state/model.ts";
import { Refusal } from "./refusal.ts";
import type { Region } from "./region.ts";

export type Bmc = { reach: "manual" } | { reach: "ok"; box: Hardware } | { reach: "failed"; message: string };

const UNREACHABLE =
  "Connection timed out while performing power action.  Check BMC configuration and connectivity and try again.";
const WRONG_USER = "Incorrect username.  Check BMC configuration and try again.";
const WRONG_PASSWORD = "Incorrect password.  Check BMC configuration and try again.";

/** Returns what the rack controller finds when it connects to the machine's BMC. A simulated server without a BMC password accepts every password. */
export function bmcOf(region: Region, machine: Machine): Bmc {
  if (machine.powerType === "manual") return { reach: "manual" };
  const box = region.hardwareOf(machine);
  if (box === undefined || !box.bmcReachable) return { reach: "failed", message: UNREACHABLE };
  if (box.bmcPass === "") return { reach: "ok", box };
  if (machine.powerParameters["power_user"] !== box.bmcUser) return { reach: "failed", message: WRONG_USER };
  if (machine.powerParameters["power_pass"] !== box.bmcPass) return { reach: "failed", message: WRONG_PASSWORD };
  return { reach: "ok", box };
}

function requireRack(region: Region): void {
  if (!region.state.rack.connected)
    throw new Refusal(503, "Unable to connect to any rack controller.", "text/plain; charset=utf-8", {
      "Retry-After": "10",
    });
}

/**
 * Throws the error of a failed power call if the rack controller cannot use the machine's BMC. A broken BMC makes the power call fail only after the
 * time `bmcTimeout`.
 */
export async function requireBmc(region: Region, machine: Machine): Promise<Bmc> {
  if (machine.powerType === "")
    throw new Refusal(500, "Power type is unset; the machine's power cannot be controlled.");
  if (machine.powerType !== "manual") requireRack(region);
  const bmc = bmcOf(region, machine);
  if (bmc.reach !== "failed") return bmc;
  await sleep(region.realMs(region.timings.bmcTimeout));
  region.event(machine, "WARNING", "Failed to query node's BMC", bmc.message);
  machine.powerState = "error";
  region.changed();
  throw new Refusal(500, bmc.message);
}

/** MAAS writes no event for a change of power, so clients see the change only in the next answer about the machine. */
export function setPower(region: Region, machine: Machine, power: "on" | "off"): void {
  const bmc = bmcOf(region, machine);
  if (bmc.reach === "failed") return;
  if (bmc.reach === "ok") bmc.box.power = power;
  if (bmc.reach === "manual" && power === "on") return;
  machine.powerState = power;
}

const powerSeconds = (region: Region, machine: Machine): number =>
  region.hardwareOf(machine)?.bmcSeconds ?? region.timings.power;

export function startPowerOn(region: Region, machine: Machine): void {
  region.count(machine.systemId, "power_on");
  region.schedule("power_on", machine, powerSeconds(region, machine));
}

export type StopMode = "soft" | "hard";

/** A soft stop is a shutdown by the host's system, which is followed by the power. A system that hangs follows no soft stop. */
export function startPowerOff(region: Region, machine: Machine, mode: StopMode = "hard"): void {
  region.count(machine.systemId, mode === "soft" ? "shutdown" : "power_off");
  if (mode === "soft" && region.hardwareOf(machine)?.hangs === true) return;
  region.schedule("power_off", machine, powerSeconds(region, machine));
}
