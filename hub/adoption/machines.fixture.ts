import { MAAS_STATUS } from "../../shared/maas-status.ts";
import type { MachineDetails } from "../../shared/machine-details.ts";
import type { MachineToAdopt } from "./rules.ts";

/** The present time in the tests of the rules for adopting machines. */
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

/** A machine for tests: it runs, Muster's MAAS user owns it, its hardware sync is healthy, and it has no RoCE address. */
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
