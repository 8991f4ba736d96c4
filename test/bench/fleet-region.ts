/**
 * A simulated MAAS region with as many deployed machines as the environment variable FLEET_MACHINES says. To save memory, all machines of the
 * simulated region share the interfaces and disks of one machine, because the benchmark changes no machine. The answers of the simulated region
 * contain every machine in full.
 */
import { learnHardware } from "../fakes/maas/engine/inventory.ts";
import { blankMachine } from "../fakes/maas/http/operations/machine-form.ts";
import { startMaasSimulator } from "../fakes/maas/simulator.ts";
import { newSystemId } from "../fakes/maas/state/seed.ts";
import { bmcAddress } from "../fakes/maas/state/site.ts";
import { STATUS } from "../fakes/maas/state/statuses.ts";

const simulator = await startMaasSimulator({ machines: 1 });
const { region } = simulator.sim;
const one = blankMachine(region);
one.powerType = "ipmi";
one.powerParameters = { power_address: bmcAddress(1) };
region.state.machines.push(one);
learnHardware(region, one);
region.forceStatus(one, STATUS.deployed);
region.setOwner(one, "admin");
one.powerState = "on";
region.state.machines = Array.from({ length: Number(process.env["FLEET_MACHINES"]) }, (_, n) => ({
  ...one,
  id: n + 1,
  systemId: newSystemId(),
  hostname: `c${n}`,
}));
process.once("SIGTERM", () => void simulator.close().then(() => process.exit(0)));
process.stdout.write(
  `${JSON.stringify({
    listening: simulator.url,
    control: simulator.controlUrl,
    key: simulator.apiKey,
    systemIds: region.state.machines.map(({ systemId }) => systemId),
  })}\n`,
);
