import type { Secret } from "../../shared/secret.ts";
import type { InterfaceAddress } from "./host-address.ts";

/**
 * One instance of `MaasPort` talks to one site with one token. No method of `MaasPort` repeats a failed call, because the workflow engine repeats the
 * stage. If a changing call times out, its outcome is unknown (`error.outcomeUnknown`): read the machine's state, and never simply repeat the call
 * (decision M13).
 */
export interface MaasPort {
  version(): Promise<{ version: string; capabilities: readonly string[] }>;
  /**
   * `clockAheadSeconds` returns by how many seconds MAAS's clock is ahead of the hub's, or null if MAAS's answer has no date. MAAS answers the call
   * `clockAheadSeconds` without a valid token.
   */
  clockAheadSeconds(): Promise<number | null>;
  /** The call `whoami` proves that the token is valid; the call `version` does not prove it (decision M1). */
  whoami(): Promise<{ username: string; isSuperuser: boolean }>;
  rackControllers(): Promise<readonly MaasRack[]>;
  scripts(type: "commissioning" | "testing"): Promise<ReadonlySet<string>>;
  bootResources(): Promise<readonly { name: string; architecture: string; type: string }[]>;
  getConfig(name: string): Promise<unknown>;
  setConfig(name: string, value: string): Promise<void>;

  readMachine(systemId: string): Promise<MaasMachine | null>;
  /** Reads many machines in one request to MAAS. If MAAS does not know some of the ids, `readMachines` returns only the known machines. */
  readMachines(systemIds: readonly string[]): Promise<MachineList>;
  /** Reads all machines of the region, which takes minutes in a large region. If no machine of the list can be parsed, the error is `bad_answer`. */
  listMachines(): Promise<MachineList>;
  /** The hub checks the hostnames in MAAS's answer, because MAAS ignores filters that it does not know. */
  findByHostname(hostname: string): Promise<readonly MaasMachine[]>;
  findByMac(mac: string): Promise<readonly MaasMachine[]>;
  /**
   * Returns the BMC's address of each machine by system id; an address is "" if MAAS does not know it (decision M6). The parser drops the BMC
   * passwords that MAAS's answer contains.
   */
  powerAddresses(only?: readonly string[]): Promise<ReadonlyMap<string, string>>;
  /** MAAS's answer with all system ids has a hundredth of the size of its list of machines. */
  systemIds(): Promise<ReadonlySet<string>>;

  /** Creates the machine in MAAS without commissioning it. */
  createMachine(input: { hostname: string; architecture: string; power: PowerLogin }): Promise<MaasMachine>;
  updateMachine(
    systemId: string,
    input: { hostname?: string; power?: PowerLogin; enableHwSync?: boolean },
  ): Promise<MaasMachine>;
  /**
   * Deletes the machine's record in MAAS, in any status and without a change of its power (maas 2.12). If MAAS does not know the machine, the error
   * of the deletion is `not_found`. MAAS refuses to delete a locked machine with `forbidden`.
   */
  deleteMachine(systemId: string): Promise<void>;
  /** `scripts` names commissioning scripts by name or tag. If the list of commissioning scripts is empty or missing, MAAS chooses the scripts. */
  commission(systemId: string, scripts?: MaasScripts): Promise<MaasMachine>;
  abort(systemId: string, comment: string): Promise<MaasMachine>;
  deploy(
    systemId: string,
    input: { userDataBase64: Secret; distroSeries: string; enableHwSync: boolean; comment: string },
  ): Promise<MaasMachine>;
  release(systemId: string, input: { comment: string; erase?: "quick" | "secure" | "full" }): Promise<MaasMachine>;
  /** With `soft`, MAAS asks the host's system to shut down, if the machine's power type can; without `soft`, MAAS cuts the power at once (maas 2.13). */
  powerOff(systemId: string, how?: { readonly soft: boolean }): Promise<void>;
  /**
   * MAAS powers a machine on only if the machine has an owner. When MAAS powers a machine on without new user data, MAAS forgets the machine's user
   * data (maas 2.13).
   */
  powerOn(systemId: string): Promise<void>;
  queryPowerState(systemId: string): Promise<string>;
  overrideFailedTesting(systemId: string): Promise<MaasMachine>;
  /** The machine's own MAAS token is null before the machine's first deploy (decision M3). */
  getMachineToken(systemId: string): Promise<MachineToken | null>;

  /**
   * Tells how MAAS's release script erased each disk when the machine was last released with that script. Returns null if MAAS stored no output of
   * its release script. MAAS before 3.5 has no release scripts and answers with `rejected_input` (maas 2.9).
   */
  wipedDisks(systemId: string): Promise<readonly WipedDisk[] | null>;
  blockDevices(systemId: string): Promise<readonly MaasBlockDevice[]>;
  setBootDisk(systemId: string, deviceId: number): Promise<void>;
  setFlatStorageLayout(systemId: string, rootDeviceId: number): Promise<void>;

  interfaces(systemId: string): Promise<readonly MaasInterface[]>;
  setInterfaceVlan(systemId: string, interfaceId: number, vlanId: number): Promise<MaasInterface>;
  linkSubnet(
    systemId: string,
    interfaceId: number,
    link: { mode: "auto" | "dhcp" | "static"; subnetId: number; ipAddress?: string },
  ): Promise<MaasInterface>;
  unlinkSubnet(systemId: string, interfaceId: number, linkId: number): Promise<MaasInterface>;
  subnets(): Promise<readonly MaasSubnet[]>;
  createSubnet(input: { cidr: string; name: string; vlanId: number; managed: boolean }): Promise<MaasSubnet>;

  /**
   * Reads MAAS's events from the newest to the oldest. With `after`, `events` reads the `limit` oldest events whose id is above `after` (maas 2.15).
   * `events` also reads MAAS's events of the level DEBUG.
   */
  events(query: { after?: number; limit: number }): Promise<readonly MaasEvent[]>;
  machineEvents(systemId: string, query: { limit: number; level: "DEBUG" | "INFO" }): Promise<readonly MaasEvent[]>;
}

export interface MaasScripts {
  readonly commissioning: readonly string[];
  readonly testing: readonly string[];
}

export interface MaasRack {
  readonly systemId: string;
  readonly hostname: string;
  readonly interfaces: readonly { readonly name: string; readonly vlanVid: number | null; readonly dhcpOn: boolean }[];
}

export interface PowerLogin {
  /** The protocol of the machine's BMC, which is IPMI by default. For a machine whose interfaces are unknown, MAAS accepts only IPMI (maas 2.2). */
  readonly driver?: "ipmi" | "redfish";
  readonly address: string;
  readonly user: string;
  readonly pass: Secret;
}

export interface MachineToken {
  readonly consumerKey: string;
  readonly tokenKey: string;
  readonly tokenSecret: Secret;
}

/** The parser of MAAS's large answer about a machine drops each field that `MaasMachine` does not list. */
export interface MaasMachine {
  readonly systemId: string;
  readonly hostname: string;
  /** The parser accepts an unknown status code, and the parts of the hub that need the status report `unknown_maas_status`. */
  readonly status: number;
  readonly statusName: string;
  readonly statusMessage: string;
  readonly errorDescription: string;
  readonly powerState: string;
  readonly owner: string | null;
  readonly locked: boolean;
  readonly ipAddresses: readonly string[];
  /** `hostAddresses` chooses the host's own address among the machine's addresses. */
  readonly interfaceAddresses: readonly InterfaceAddress[];
  readonly macAddresses: readonly string[];
  readonly osystem: string;
  readonly distroSeries: string;
  readonly enableHwSync: boolean | null;
  readonly lastSync: Date | null;
  readonly nextSync: Date | null;
  readonly syncIntervalSeconds: number | null;
  readonly hardwareUuid: string | null;
  readonly serial: string | null;
  readonly boardSerial: string | null;
  readonly chassisSerial: string | null;
  readonly firmwareVersion: string | null;
  readonly tags: readonly string[];
  readonly pool: string;
  readonly zone: string;
  /** The machine's architecture with its subarchitecture, for example `amd64/generic`. */
  readonly architecture: string;
  readonly cpuCount: number | null;
  readonly memoryMib: number | null;
  /** True if the deployed system runs from memory, so that a restart of the host loses the system. */
  readonly ephemeral: boolean;
}

/** If the hub cannot parse one machine, the list still contains the other machines. */
export interface MachineList {
  readonly machines: readonly MaasMachine[];
  /** Machines that MAAS lists, but whose data the hub could not parse. */
  readonly unreadable: readonly UnreadableMachine[];
}
export interface UnreadableMachine {
  readonly systemId: string | null;
  readonly problem: string;
}

/**
 * The method by which MAAS's release script erased a disk. `secure` is the drive's own secure erase, `zero` and `quick` are writes of zeroes to the
 * whole disk or to its ends. `write_zeroes` is a command of NVMe disks that may erase only some blocks. `none` means that no method of the release
 * script erased the disk.
 */
export type WipeMethod = "secure" | "zero" | "write_zeroes" | "quick" | "none";
export interface WipedDisk {
  readonly name: string;
  readonly method: WipeMethod;
}

export interface MaasBlockDevice {
  readonly id: number;
  readonly type: string;
  readonly name: string;
  readonly model: string;
  readonly serial: string;
  readonly idPath: string;
  readonly sizeBytes: number;
}

export interface MaasLink {
  readonly id: number;
  readonly mode: string;
  readonly ipAddress: string | null;
  readonly subnetId: number | null;
  readonly subnetCidr: string | null;
}

export interface MaasInterface {
  readonly id: number;
  readonly name: string;
  readonly type: string;
  readonly macAddress: string;
  readonly vlanId: number | null;
  readonly vlanVid: number | null;
  readonly links: readonly MaasLink[];
}

export interface MaasSubnet {
  readonly id: number;
  readonly cidr: string;
  readonly name: string;
  readonly vlanId: number;
  readonly vlanVid: number;
}

export interface MaasEvent {
  readonly id: number;
  readonly node: string;
  readonly hostname: string;
  readonly level: string;
  readonly type: string;
  readonly description: string;
  readonly created: string;
}

/** Each failing HTTP answer of MAAS and each transport error has exactly one `MaasErrorCode`. */
export const MAAS_ERRORS = [
  "unreachable",
  "timeout",
  "unauthorized",
  "forbidden",
  "not_found",
  "rejected_input",
  "state_conflict",
  "conflict_transient",
  "unavailable",
  "power_failure",
  "power_login_refused",
  "no_rack",
  "server_error",
  "bad_answer",
] as const;
export type MaasErrorCode = (typeof MAAS_ERRORS)[number];

export class MaasError extends Error {
  readonly code: MaasErrorCode;
  readonly operation: string;
  readonly httpStatus: number | null;
  /** True if the failed call to MAAS may have taken effect in MAAS. */
  readonly outcomeUnknown: boolean;
  readonly retryAfterSeconds: number | null;
  /**
   * A short piece of MAAS's answer, without credentials. If MAAS answered 401, the error's `snippet` of the answer is always empty (decision M12).
   */
  readonly snippet: string;
  readonly fieldErrors: Readonly<Record<string, readonly string[]>>;
  constructor(init: {
    code: MaasErrorCode;
    operation: string;
    message: string;
    httpStatus?: number;
    outcomeUnknown?: boolean;
    retryAfterSeconds?: number;
    snippet?: string;
    fieldErrors?: Readonly<Record<string, readonly string[]>>;
    cause?: unknown;
  }) {
    super(init.message, init.cause === undefined ? undefined : { cause: init.cause });
    this.name = "MaasError";
    this.code = init.code;
    this.operation = init.operation;
    this.httpStatus = init.httpStatus ?? null;
    this.outcomeUnknown = init.outcomeUnknown ?? false;
    this.retryAfterSeconds = init.retryAfterSeconds ?? null;
    this.snippet = init.snippet ?? "";
    this.fieldErrors = init.fieldErrors ?? {};
  }
}
