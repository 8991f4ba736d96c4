import { MAAS_STATUS } from "../../shared/maas-status.ts";
import type { MachineDetails } from "../../shared/machine-details.ts";
import type { MachineToAdopt } from "./rules.ts";

/** The time of all judgements in the tests of the adoption rules. */
export const NOW = new Date("2026-03-01T12:00:00Z");

export const DETAILS: MachineDetails = {
  tags: [],
  pool: "default",
  zone: "default",
  macs: ["b8:59:9f:00:00:01"],
  hardware_uuid: "u-1",
  serial: null,
  architecture: "amd64/generic",
  osystem: "ubuntu",
  distro_series: "noble",
  cpu_count: 8,
  memory_mib: 1024,
  ephemeral: false,
};

/** A running machine of Muster's MAAS user with a healthy hardware sync and no RoCE address. */
export const MACHINE: MachineToAdopt = {
  systemId: "abc123",
  hostname: "c07u41",
  status: MAAS_STATUS.deployed,
  statusName: "Deployed",
  absent: false,
  powerState: "on",
  owner: "muster",
  locked: false,
  interfaceAddresses: [],
  enableHwSync: true,
  lastSync: NOW,
  syncIntervalSeconds: 900,
  details: DETAILS,
};
