import { z } from "zod";
import { Secret } from "../../shared/secret.ts";
import type { FormValue, Transport } from "./http.ts";
import { readMachineList, readWholeFleet } from "./machine-list.ts";
import { MaasError, type MaasPort, type MachineList, type PowerLogin } from "./port.ts";
import { Machine, MachineIds, MachineTokenAnswer, PowerAddresses } from "./schemas.ts";

type Machines = Pick<
  MaasPort,
  | "readMachine"
  | "readMachines"
  | "listMachines"
  | "findByHostname"
  | "findByMac"
  | "powerAddresses"
  | "systemIds"
  | "createMachine"
  | "updateMachine"
  | "deleteMachine"
  | "getMachineToken"
>;

const List = z.array(Machine);
/** MAAS's only short list of machines is the answer with the machines' power parameters. */
const POWERS = { method: "GET", path: "machines/", op: "power_parameters" } as const;
/** The largest number of system ids in one request to MAAS, because web servers limit the length of the request line. */
const IDS_PER_REQUEST = 500;

export const machinePath = (systemId: string): string => `machines/${encodeURIComponent(systemId)}/`;

/**
 * Encodes a machine's power parameters with the names of MAAS's drivers. The encoded power parameters do not contain `power_off_mode`, because each
 * `power_off` call to MAAS names the mode (maas 2.2).
 */
const powerForm = (power: PowerLogin): Record<string, FormValue> => ({
  ...(power.driver === "redfish"
    ? { power_type: "redfish" }
    : { power_type: "ipmi", power_parameters_power_driver: "LAN_2_0" }),
  power_parameters_power_address: power.address,
  power_parameters_power_user: power.user,
  power_parameters_power_pass: power.pass,
});

export function machines(http: Transport): Machines {
  const list = (query: Readonly<Record<string, string | readonly string[]>>) =>
    http.json({ method: "GET", path: "machines/", query }, List);
  return {
    readMachine: (systemId) =>
      http.json({ method: "GET", path: machinePath(systemId) }, Machine).catch((error: unknown) => {
        if (error instanceof MaasError && error.code === "not_found") return null;
        throw error;
      }),
    readMachines: async (systemIds) => {
      const wanted = new Set<string | null>(systemIds);
      const lists: MachineList[] = [];
      for (let at = 0; at < systemIds.length; at += IDS_PER_REQUEST) {
        const id = systemIds.slice(at, at + IDS_PER_REQUEST);
        lists.push(await readMachineList(http, { query: { id }, machines: id.length }));
      }
      return {
        machines: lists.flatMap(({ machines }) => machines.filter(({ systemId }) => wanted.has(systemId))),
        unreadable: lists.flatMap(({ unreadable }) => unreadable.filter(({ systemId }) => wanted.has(systemId))),
      };
    },
    listMachines: () => readWholeFleet(http),
    // The hub compares the hostnames in MAAS's answer, because MAAS ignores a filter that it does not know and answers with all machines (maas 2.1).
    findByHostname: async (hostname) => (await list({ hostname })).filter((machine) => machine.hostname === hostname),
    findByMac: async (mac) =>
      (await list({ mac_address: mac.toLowerCase() })).filter((machine) =>
        machine.macAddresses.includes(mac.toLowerCase()),
      ),
    powerAddresses: async (only) => {
      const query = only === undefined ? {} : { id: only };
      const powers = await http.json({ ...POWERS, query }, PowerAddresses);
      return new Map(Object.entries(powers).map(([systemId, power]) => [systemId, power.power_address ?? ""]));
    },
    systemIds: async () => new Set(Object.keys(await http.json({ ...POWERS, slow: true }, MachineIds))),
    createMachine: (input) =>
      http.json(
        {
          method: "POST",
          path: "machines/",
          form: {
            hostname: input.hostname,
            architecture: input.architecture,
            commission: false,
            ...powerForm(input.power),
          },
        },
        Machine,
      ),
    updateMachine: (systemId, input) =>
      http.json(
        {
          method: "PUT",
          path: machinePath(systemId),
          form: {
            ...(input.hostname === undefined ? {} : { hostname: input.hostname }),
            ...(input.power === undefined ? {} : powerForm(input.power)),
            ...(input.enableHwSync === undefined ? {} : { enable_hw_sync: input.enableHwSync }),
          },
        },
        Machine,
      ),
    deleteMachine: async (systemId) => void (await http.text({ method: "DELETE", path: machinePath(systemId) })),
    getMachineToken: async (systemId) => {
      const token = await http.json(
        { method: "GET", path: machinePath(systemId), op: "get_token" },
        MachineTokenAnswer,
      );
      return token === null
        ? null
        : { consumerKey: token.consumer_key, tokenKey: token.token_key, tokenSecret: new Secret(token.token_secret) };
    },
  };
}
