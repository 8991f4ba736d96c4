import type { MaasBlockDevice, MaasEvent, MaasMachine } from "../../maas/port.ts";

export const machine = (fields: Partial<MaasMachine> = {}): MaasMachine => ({
  systemId: "abc123",
  hostname: "c07u43",
  status: 4,
  statusName: "Ready",
  statusMessage: "",
  errorDescription: "",
  powerState: "off",
  owner: null,
  locked: false,
  ipAddresses: [],
  interfaceAddresses: [],
  macAddresses: [],
  osystem: "",
  distroSeries: "",
  enableHwSync: null,
  lastSync: null,
  nextSync: null,
  syncIntervalSeconds: null,
  hardwareUuid: null,
  serial: null,
  boardSerial: null,
  chassisSerial: null,
  firmwareVersion: null,
  tags: [],
  pool: "",
  zone: "",
  architecture: "",
  cpuCount: null,
  memoryMib: null,
  ephemeral: false,
  ...fields,
});

export const disk = (fields: Partial<MaasBlockDevice> = {}): MaasBlockDevice => ({
  id: 1,
  type: "physical",
  name: "sda",
  model: "",
  serial: "",
  idPath: "",
  sizeBytes: 480e9,
  ...fields,
});

/** A test names MAAS's events oldest first, but the fixture returns the events newest first, as MAAS does. */
export const events = (...types: string[]): MaasEvent[] =>
  types
    .map((type, index) => ({
      id: index + 1,
      node: "abc123",
      hostname: "c07u43",
      level: "INFO",
      type,
      description: "",
      created: "",
    }))
    .reverse();
