import type { Status } from "./statuses.ts";

/** The state of the simulated region as plain JSON, which is the content of the state file. */

export type MaasVersion = "3.5.12" | "3.7.3";
export type PowerState = "on" | "off" | "unknown" | "error";
export type LinkMode = "auto" | "dhcp" | "static" | "link_up";

export interface Link {
  id: number;
  mode: LinkMode;
  subnetId: number | null;
  ipAddress: string | null;
}

export interface NetworkInterface {
  id: number;
  name: string;
  macAddress: string;
  vlanId: number | null;
  links: Link[];
  /** MAAS's field `params` of the interface: an object, or a text if an old MAAS version stored the interface. */
  params: Record<string, never> | string;
  vendor: string | null;
  product: string | null;
  firmwareVersion: string | null;
  linkSpeed: number;
  interfaceSpeed: number;
  numaNode: number;
  sriovMaxVf: number;
  mtu: number;
  tags: string[];
  /** What MAAS's network discovery found on the interface, or null if no discovery ever ran. */
  discovered: never[] | null;
}

export interface Filesystem {
  fstype: string;
  label: string | null;
  uuid: string;
  mountPoint: string | null;
}

export interface Partition {
  id: number;
  uuid: string;
  size: number;
  bootable: boolean;
  filesystem: Filesystem | null;
  usedFor: string;
}

export interface BlockDevice {
  id: number;
  kind: "physical" | "virtual";
  name: string;
  size: number;
  blockSize: number;
  model: string | null;
  serial: string | null;
  idPath: string | null;
  firmwareVersion: string | null;
  uuid: string | null;
  numaNode: number | null;
  tags: string[];
  partitionTable: "GPT" | null;
  partitions: Partition[];
  filesystem: Filesystem | null;
  usedFor: string;
}

export const SCRIPT_STATUS = { pending: 0, running: 1, passed: 2, failed: 3, aborted: 5 } as const;
export type ScriptStatus = (typeof SCRIPT_STATUS)[keyof typeof SCRIPT_STATUS];
export type ScriptSetKind = "commissioning" | "testing" | "installation" | "release";

export interface ScriptResult {
  id: number;
  name: string;
  status: ScriptStatus;
  created: number;
  updated: number;
  /** When the commissioning, test or installation script ended, in milliseconds since the epoch, or null until the script ends. */
  ended: number | null;
  parameters: Record<string, unknown>;
  /** What a script on the machine printed, if the simulated region stored the output. */
  output?: string | undefined;
}

export interface ScriptSet {
  id: number;
  kind: ScriptSetKind;
  status: ScriptStatus;
  results: ScriptResult[];
}

export interface MachineToken {
  consumer_key: string;
  token_key: string;
  token_secret: string;
}

export interface Machine {
  id: number;
  systemId: string;
  hostname: string;
  description: string;
  architecture: string;
  minHweKernel: string | null;
  powerType: string;
  powerParameters: Record<string, string>;
  powerState: PowerState;
  status: Status;
  previousStatus: Status;
  owner: string | null;
  agentName: string;
  locked: boolean;
  errorDescription: string;
  osystem: string;
  distroSeries: string;
  hweKernel: string | null;
  ephemeralDeploy: boolean;
  enableKernelCrashDump: boolean;
  enableHwSync: boolean;
  /** The time of the machine's last hardware sync, in milliseconds since the epoch. */
  lastSync: number | null;
  /** The interval of the machine's hardware sync, in seconds. */
  syncInterval: number | null;
  userData: string | null;
  token: MachineToken | null;
  pool: string;
  zone: string;
  tags: string[];
  ownerData: Record<string, string>;
  cpuCount: number;
  cores: number[];
  memory: number;
  swapSize: number | null;
  interfaces: NetworkInterface[];
  bootInterfaceId: number | null;
  blockDevices: BlockDevice[];
  bootDiskId: number | null;
  volumeGroupIds: number[];
  /** True if MAAS has copied the filesystem layout for the machine's present owner. */
  ownedStorage: boolean;
  scriptSets: Record<ScriptSetKind, ScriptSet | null>;
  pastScriptSets: ScriptSet[];
  hardwareUuid: string | null;
  hardwareInfo: Record<string, string>;
  biosBootMethod: string | null;
  /** The id of the machine's simulated server, or null while no simulated server has the machine's power address. */
  hardwareId: string | null;
  skipNetworking: boolean;
  skipStorage: boolean;
  /** The time of the machine's last deploy, in milliseconds since the epoch. */
  deployedAt: number | null;
  statusMessage: string | null;
  statusAction: string | null;
}

export interface Fabric {
  id: number;
  name: string;
}

export interface Vlan {
  id: number;
  vid: number;
  name: string;
  fabricId: number;
  mtu: number;
  dhcpOn: boolean;
  space: string;
}

export interface Subnet {
  id: number;
  name: string;
  description: string;
  cidr: string;
  vlanId: number;
  gatewayIp: string | null;
  dnsServers: string[];
  managed: boolean;
}

export interface IpRange {
  id: number;
  subnetId: number;
  type: "dynamic" | "reserved";
  startIp: string;
  endIp: string;
}

export const EVENT_LEVELS = { DEBUG: 10, INFO: 20, WARNING: 30, ERROR: 40, CRITICAL: 50, AUDIT: 0 } as const;
export type EventLevel = keyof typeof EVENT_LEVELS;

export interface MaasEvent {
  id: number;
  systemId: string;
  level: EventLevel;
  type: string;
  description: string;
  username: string;
  created: number;
}

export interface ApiToken {
  name: string;
  consumer_key: string;
  token_key: string;
  token_secret: string;
}

export interface User {
  username: string;
  email: string;
  isSuperuser: boolean;
  tokens: ApiToken[];
  sshKeys: { id: number; key: string }[];
}

export interface HardwareDisk {
  name: string;
  model: string;
  serial: string;
  size: number;
  blockSize: number;
  tags: string[];
  firmwareVersion: string | null;
}

export interface HardwareNic {
  name: string;
  mac: string;
  vlanId: number;
  pxe: boolean;
  vendor: string | null;
  product: string | null;
  linkSpeed: number;
}

/** A simulated server in a rack, which exists whether or not MAAS has a machine for it. */
export interface Hardware {
  id: string;
  bmcAddress: string;
  bmcUser: string;
  bmcPass: string;
  /** False when the BMC of the simulated server does not answer. */
  bmcReachable: boolean;
  /** True if the host's system hangs, so that no shutdown comes to its end. */
  hangs: boolean;
  /** How many simulated seconds the BMC takes for a power action, by default `timings.power`. */
  bmcSeconds?: number | undefined;
  refusesSecureErase?: boolean | undefined;
  power: "on" | "off";
  cpuCount: number;
  cores: number;
  memoryMib: number;
  uuid: string | null;
  info: Record<string, string>;
  disks: HardwareDisk[];
  nics: HardwareNic[];
}

export const COMMISSION_OUTCOMES = ["pass", "fail", "hang"] as const;
export const DEPLOY_OUTCOMES = ["pass", "datasource_failure", "install_failure", "hang"] as const;
export type CommissionOutcome = (typeof COMMISSION_OUTCOMES)[number];
export type DeployOutcome = (typeof DEPLOY_OUTCOMES)[number];

export interface Plan {
  commission: CommissionOutcome[];
  deploy: DeployOutcome[];
}

export const JOB_KINDS = [
  "commissioned",
  "tested",
  "deploy_installed",
  "deploy_booted",
  "deploy_failed",
  "aborted",
  "released",
  "erased",
  "power_on",
  "power_off",
  "rescue_entered",
  "rescue_left",
] as const;
export type JobKind = (typeof JOB_KINDS)[number];

/** A planned change of a simulated machine, which survives a restart of the simulator. */
export interface Job {
  id: number;
  /** The time at which the planned change happens, in milliseconds since the epoch. */
  due: number;
  kind: JobKind;
  systemId: string;
  data: Record<string, string>;
}

export const COUNTED = [
  "commission",
  "deploy",
  "release",
  "abort",
  "power_on",
  "power_off",
  "shutdown",
  "query_power_state",
  "mark_broken",
  "sync",
  "boot",
] as const;
export type Counted = (typeof COUNTED)[number];
export type Counters = Record<Counted, number>;

export interface HostRecord {
  systemId: string;
  hostname: string;
  root: string;
  /** True when the simulated host has run or skipped every part of its user data. */
  firstBootDone: boolean;
  enabledUnits: string[];
  knownUnits: string[];
  parts: { filename: string; contentType: string; run: boolean; exitStatus: number | null }[];
}

export interface State {
  schema: 1;
  sequences: Record<string, number>;
  users: User[];
  machines: Machine[];
  hardware: Hardware[];
  fabrics: Fabric[];
  vlans: Vlan[];
  subnets: Subnet[];
  ipRanges: IpRange[];
  pools: { id: number; name: string; description: string }[];
  zones: { id: number; name: string; description: string }[];
  tags: { name: string; comment: string; definition: string; kernelOpts: string }[];
  config: Record<string, string | number | boolean | null>;
  images: { id: number; name: string; architecture: string; lastDeployed: number | null }[];
  events: MaasEvent[];
  jobs: Job[];
  plans: Record<string, Plan>;
  counters: Record<string, Counters>;
  requests: Record<string, number>;
  hosts: HostRecord[];
  /**
   * When the simulator saw each OAuth nonce, in milliseconds since the epoch. A key of `nonces` consists of the OAuth consumer key, the token key and
   * the nonce, separated by spaces.
   */
  nonces: Record<string, number>;
  rack: {
    systemId: string;
    hostname: string;
    uuid: string;
    connected: boolean;
    version: string | null;
    nic: NetworkInterface;
  };
  region: { systemId: string; hostname: string };
}
