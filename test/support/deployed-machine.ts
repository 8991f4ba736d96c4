import { randomUUID } from "node:crypto";
import { learnHardware, newInterface } from "../fakes/maas/engine/inventory.ts";
import type { Region } from "../fakes/maas/engine/region.ts";
import { blankMachine } from "../fakes/maas/http/operations/machine-form.ts";
import type { Machine } from "../fakes/maas/state/model.ts";
import { STATUS } from "../fakes/maas/state/statuses.ts";

/**
 * Adds a machine to the simulated region that MAAS has deployed for the hub's user, without Muster: powered on, with hardware sync. The number `n`
 * makes the machine's addresses differ from those of other machines.
 */
export function deployedMachine(
  region: Region,
  { hostname, n, mac }: { readonly hostname: string; readonly n: number; readonly mac: string },
  change: (machine: Machine) => void = () => undefined,
): Machine {
  const machine = blankMachine(region);
  machine.hostname = hostname;
  machine.powerType = "ipmi";
  machine.powerParameters = { power_address: `10.90.${n >> 8}.${n & 255}` };
  region.state.machines.push(machine);
  learnHardware(region, machine);
  region.forceStatus(machine, STATUS.deployed);
  region.setOwner(machine, "admin");
  machine.powerState = "on";
  machine.osystem = "ubuntu";
  machine.distroSeries = "noble";
  machine.architecture = "amd64/generic";
  machine.enableHwSync = true;
  machine.syncInterval = 900;
  machine.lastSync = Date.now();
  machine.hardwareUuid = randomUUID();
  const nic = newInterface(region, "eno1", mac);
  nic.links = [{ id: 90_000 + n, mode: "dhcp", subnetId: null, ipAddress: `10.99.${n >> 8}.${n & 255}` }];
  machine.interfaces = [nic];
  machine.bootInterfaceId = nic.id;
  change(machine);
  region.changed();
  return machine;
}
