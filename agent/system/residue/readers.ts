import type { ResidueItem } from "../../../shared/residue/items.ts";
import type { ResidueEntry } from "../../../shared/residue/snapshot.ts";
import { diskReaders } from "./disk-items.ts";
import { readDisks } from "./disks-item.ts";
import { readFileItem } from "./file-items.ts";
import { readGpuHolders, readGpuState } from "./gpu-items.ts";
import {
  readAccountItem,
  readAuthorizedKeys,
  readCloudInit,
  readCredentials,
  readHistories,
  readHostIdentity,
  readUserUnits,
} from "./identity-items.ts";
import {
  readBinaryFormats,
  readBootConfig,
  readEbpf,
  readEfiVariables,
  readKernelModules,
  readModuleConfig,
  readSysctl,
} from "./kernel-items.ts";
import { readMounts, readNamespaces } from "./mount-items.ts";
import { readFirewall, readListeningSockets, readNetwork, readNetworkConfig, readRdma } from "./network-items.ts";
import { readPackageFiles, readPackages } from "./package-items.ts";
import {
  readFakeKernelThreads,
  readTenantProcesses,
  readTracedProcesses,
  readUnpackagedProcesses,
  readUserProcesses,
} from "./process-items.ts";
import type { Reading } from "./reading.ts";
import { readBlockLayers, readHugepages, readSharedMemory, readSwap } from "./storage-items.ts";
import { readContainers, readCrashDumps, readRuntimeUnits, readTemporaryFiles } from "./temporary-items.ts";

export type Reader = (reading: Reading) => Promise<ResidueEntry[]>;

/** How many milliseconds the reader of one item of the residue snapshot may take. */
export const DEADLINE_MS = 60_000;
/** Longer deadlines, in milliseconds, for items of the residue snapshot that read all disks, all packages or very large files. */
export const LONG_DEADLINES_MS: Partial<Record<ResidueItem, number>> = {
  ownerless_files: 20 * 60_000,
  setuid_files: 5 * 60_000,
  file_capabilities: 10 * 60_000,
  package_files: 21 * 60_000,
  boot_files: 5 * 60_000,
  critical_files: 5 * 60_000,
  gpu_state: 90_000,
};

/** All readers of one residue snapshot share one walk over the disks, so each snapshot needs new readers. */
export const readersOf = (): Readonly<Record<ResidueItem, Reader>> => ({
  accounts: readAccountItem,
  authorized_keys: readAuthorizedKeys,
  sshd_config: readFileItem("sshd_config"),
  privileges: readFileItem("privileges"),
  login_stack: readFileItem("login_stack"),
  user_units: readUserUnits,
  system_units: readFileItem("system_units"),
  runtime_units: readRuntimeUnits,
  cron_and_at: readFileItem("cron_and_at"),
  tenant_processes: readTenantProcesses,
  user_processes: readUserProcesses,
  unpackaged_processes: readUnpackagedProcesses,
  fake_kernel_threads: readFakeKernelThreads,
  traced_processes: readTracedProcesses,
  preload: readFileItem("preload"),
  listening_sockets: readListeningSockets,
  containers: readContainers,
  namespaces: readNamespaces,
  mounts: readMounts,
  mount_config: readFileItem("mount_config"),
  disks: readDisks,
  block_layers: readBlockLayers,
  swap: readSwap,
  hugepages: readHugepages,
  shared_memory: readSharedMemory,
  temporary_files: readTemporaryFiles,
  crash_dumps: readCrashDumps,
  histories_and_caches: readHistories,
  credentials: readCredentials,
  ...diskReaders(),
  packages: readPackages,
  package_files: readPackageFiles,
  critical_files: readFileItem("critical_files"),
  package_sources: readFileItem("package_sources"),
  kernel_modules: readKernelModules,
  module_config: readModuleConfig,
  ebpf: readEbpf,
  firewall: readFirewall,
  network: readNetwork,
  network_config: readNetworkConfig,
  sysctl: readSysctl,
  boot_config: readBootConfig,
  boot_files: readFileItem("boot_files"),
  efi_variables: readEfiVariables,
  udev_rules: readFileItem("udev_rules"),
  tmpfiles: readFileItem("tmpfiles"),
  binary_formats: readBinaryFormats,
  shell_profiles: readFileItem("shell_profiles"),
  dbus: readFileItem("dbus"),
  apparmor: readFileItem("apparmor"),
  host_identity: readHostIdentity,
  cloud_init: readCloudInit,
  trust_store: readFileItem("trust_store"),
  time_servers: readFileItem("time_servers"),
  gpu_state: readGpuState,
  gpu_holders: readGpuHolders,
  rdma: readRdma,
});
