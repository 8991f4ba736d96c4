import type { Secret } from "../../shared/secret.ts";
import type { InterfaceAddress } from "./host-address.ts";

/**
 * What the hub asks of a MAAS region (maas 2). One instance talks to one site with one token. Nothing here retries: the engine owns
 * retries. Every method throws `MaasError` only. A call that changes something and times out has an UNKNOWN outcome
 * (`error.outcomeUnknown`): read again, never repeat blindly (decision M13).
 */
export interface MaasPort {
  version(): Promise<{ version: string; capabilities: readonly string[] }>;
  /** How far MAAS's clock is ahead of the hub's, in whole seconds; null where the answer bears no date. Needs no valid token. */
  clockAheadSeconds(): Promise<number | null>;
  /** Proves the token; `version` does not (decision M1). */
  whoami(): Promise<{ username: string; isSuperuser: boolean }>;
  rackControllers(): Promise<readonly MaasRack[]>;
  /** Names and tags of the scripts that MAAS can run. */
  scripts(type: "commissioning" | "testing"): Promise<ReadonlySet<string>>;
  bootResources(): Promise<readonly { name: string; architecture: string; type: string }[]>;
  getConfig(name: string): Promise<unknown>;
  setConfig(name: string, value: string): Promise<void>;

  /** Null on 404. */
  readMachine(systemId: string): Promise<MaasMachine | null>;
  /** Many machines in one request; ids that MAAS does not know are absent from the answer. */
  readMachines(systemIds: readonly string[]): Promise<MachineList>;
  /** All machines; minutes at a large region. An answer of which no machine can be read is `bad_answer`. */
  listMachines(): Promise<MachineList>;
  /** Exact host part; the answer is checked against the filter, since MAAS ignores unknown filters. */
  findByHostname(hostname: string): Promise<readonly MaasMachine[]>;
  findByMac(mac: string): Promise<readonly MaasMachine[]>;
  /** System id -> BMC address as MAAS spells it, "" where it knows none (decision M6). Passwords in MAAS's answer are dropped at the parser. */
  powerAddresses(only?: readonly string[]): Promise<ReadonlyMap<string, string>>;
  /** Of all machines nothing but the ids: a hundredth of `listMachines`. */
  systemIds(): Promise<ReadonlySet<string>>;

  /** Never commissions by itself. */
  createMachine(input: { hostname: string; architecture: string; power: PowerLogin }): Promise<MaasMachine>;
  updateMachine(
    systemId: string,
    input: { hostname?: string; power?: PowerLogin; enableHwSync?: boolean },
  ): Promise<MaasMachine>;
  /** Scripts by name or tag; a list that is empty or left out is MAAS's own choice. */
  commission(systemId: string, scripts?: MaasScripts): Promise<MaasMachine>;
  abort(systemId: string, comment: string): Promise<MaasMachine>;
  deploy(
    systemId: string,
    input: { userDataBase64: Secret; distroSeries: string; enableHwSync: boolean; comment: string },
  ): Promise<MaasMachine>;
  release(systemId: string, input: { comment: string; erase?: "quick" | "secure" | "full" }): Promise<MaasMachine>;
  powerOff(systemId: string): Promise<void>;
  queryPowerState(systemId: string): Promise<string>;
  overrideFailedTesting(systemId: string): Promise<MaasMachine>;
  /** Null before the deploy call (decision M3). */
  getMachineToken(systemId: string): Promise<MachineToken | null>;

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

  /** Newest first; with `after`, the `limit` oldest behind that id (maas 2.15). Level DEBUG. */
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
  /** By default IPMI, which alone MAAS takes for a machine of unknown interfaces (maas 2.2). */
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

/** Only the fields that we use; everything else of MAAS's large answer is dropped at the parser. */
export interface MaasMachine {
  readonly systemId: string;
  readonly hostname: string;
  /** Integer code; see `status.ts`. A code that we do not know stays a number and is `unknown_maas_status` where it matters. */
  readonly status: number;
  readonly statusName: string;
  readonly statusMessage: string;
  readonly errorDescription: string;
  readonly powerState: string;
  readonly owner: string | null;
  readonly locked: boolean;
  readonly ipAddresses: readonly string[];
  /** The same with what has them, as far as MAAS says; which of them is the host's is said by `hostAddresses`. */
  readonly interfaceAddresses: readonly InterfaceAddress[];
  readonly macAddresses: readonly string[];
  readonly osystem: string;
  readonly distroSeries: string;
  readonly enableHwSync: boolean | null;
  readonly lastSync: Date | null;
  readonly nextSync: Date | null;
  readonly syncIntervalSeconds: number | null;
  readonly hardwareUuid: string | null;
}

/** An answer about many machines, of which one that has another shape than we know does not hide the others. */
export interface MachineList {
  /** Each once. */
  readonly machines: readonly MaasMachine[];
  /** They are there, and nothing else is known of them. */
  readonly unreadable: readonly UnreadableMachine[];
}
export interface UnreadableMachine {
  /** Null where not even this can be read. */
  readonly systemId: string | null;
  readonly problem: string;
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
  /** system_id of the node. */
  readonly node: string;
  readonly hostname: string;
  readonly level: string;
  readonly type: string;
  readonly description: string;
  readonly created: string;
}

/** What can go wrong with a MAAS call; every HTTP answer and every transport fault is exactly one of these. */
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
  /** e.g. `POST machines/{id}/?op=deploy`. */
  readonly operation: string;
  readonly httpStatus: number | null;
  /** True when the call may have taken effect although it failed here. */
  readonly outcomeUnknown: boolean;
  /** From Retry-After; null where MAAS gave none. */
  readonly retryAfterSeconds: number | null;
  /** Bounded and sanitized piece of MAAS's answer; always empty for 401 (decision M12). */
  readonly snippet: string;
  /** Field errors of a 400, where MAAS gave any. */
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
