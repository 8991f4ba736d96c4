import { join } from "node:path";
import type { ResidueEntry } from "../../../shared/residue/snapshot.ts";
import { readFileItem } from "./file-items.ts";
import { openFilesOf, pidsOf } from "./processes.ts";
import { linesOf, namesIn, presence, presences, type Reading, readText, settled, textOf, valued } from "./reading.ts";
import { describeFile, readTrees } from "./trees.ts";

/**
 * The bits of the kernel's taint value that show tampering. Taint bits of hardware faults, kernel faults, and drivers from outside the kernel show no
 * tampering.
 */
const TAINT_BITS: Readonly<Record<number, string>> = {
  1: "module loaded by force",
  3: "module removed by force",
  8: "ACPI table replaced",
  15: "kernel patched while it runs",
};

/**
 * Reads the loaded kernel modules that come from outside the kernel and from no module file of the host. A kernel module that comes from a module
 * file of the host does not count as residue of a tenant, because the kernel may load a driver at its first use. The items `module_config` and
 * `package_files` of the residue snapshot compare the host's module files. The last column of /proc/modules has a module's taint letters in
 * parentheses.
 */
export async function readKernelModules(reading: Reading): Promise<ResidueEntry[]> {
  const installed = await installedModules(reading);
  const modules = linesOf(await readText(join(reading.root, "proc/modules"))).flatMap((line) => {
    const marks = /\(([A-Z]+)[+-]?\)$/.exec(line)?.[1];
    const name = line.split(" ", 1)[0] ?? "";
    return marks === undefined || installed.has(name) ? [] : [`module ${name} (${marks})`];
  });
  const taint = Number((await textOf(reading, "/proc/sys/kernel/tainted")) || "0");
  const marks = Object.entries(TAINT_BITS).flatMap(([bit, word]) =>
    Math.floor(taint / 2 ** Number(bit)) % 2 === 1 ? [`kernel mark: ${word}`] : [],
  );
  return presences(reading, [...modules, ...marks]);
}

/** Returns the modules that the running kernel can load, from modules.dep with lines such as `updates/dkms/nvidia-uvm.ko.zst: kernel/x.ko`. */
async function installedModules(reading: Reading): Promise<ReadonlySet<string>> {
  const kernel = await textOf(reading, "/proc/sys/kernel/osrelease");
  const lines = linesOf(await readText(join(reading.root, "usr/lib/modules", kernel, "modules.dep")));
  return new Set(lines.map((line) => /([^/:]+)[.]ko[^/:]*:/.exec(line)?.[1]?.replaceAll("-", "_") ?? ""));
}

/** Reads the configuration of kernel modules, and the folders to which packages and people add modules. */
export async function readModuleConfig(reading: Reading): Promise<ResidueEntry[]> {
  const added = (await namesIn(reading, "/usr/lib/modules")).flatMap((kernel) =>
    ["updates", "extra", "weak-updates", "misc", "build-extra"].map((folder) => ({
      path: `/usr/lib/modules/${kernel}/${folder}`,
      depth: 1,
    })),
  );
  return [...(await readFileItem("module_config")(reading)), ...(await readTrees(reading, added))];
}

/**
 * The names of kernel settings on which the host's safety or a tenant's work depends. SYSCTLS leaves out settings that the kernel computes from the
 * size of the memory.
 */
const SYSCTLS: Readonly<Record<string, readonly string[]>> = {
  kernel: [
    ...[
      "core_pattern",
      "core_uses_pid",
      "core_pipe_limit",
      "dmesg_restrict",
      "kptr_restrict",
      "perf_event_paranoid",
      "modprobe",
    ],
    ...[
      "unprivileged_bpf_disabled",
      "unprivileged_userns_clone",
      "apparmor_restrict_unprivileged_userns",
      "modules_disabled",
    ],
    ...[
      "kexec_load_disabled",
      "randomize_va_space",
      "yama/ptrace_scope",
      "sysrq",
      "panic",
      "panic_on_oops",
      "poweroff_cmd",
    ],
    ...[
      "hotplug",
      "ftrace_enabled",
      "io_uring_disabled",
      "numa_balancing",
      "nmi_watchdog",
      "softlockup_panic",
      "hung_task_panic",
    ],
    ...[
      "shmmax",
      "shmall",
      "shmmni",
      "sem",
      "msgmax",
      "msgmnb",
      "msgmni",
      "printk",
      "domainname",
      "sched_rt_runtime_us",
    ],
    ...[
      "usermodehelper/bset",
      "usermodehelper/inheritable",
      "seccomp/actions_logged",
      "warn_limit",
      "oops_limit",
      "watchdog",
    ],
  ],
  fs: [
    ...[
      "protected_hardlinks",
      "protected_symlinks",
      "protected_fifos",
      "protected_regular",
      "suid_dumpable",
      "nr_open",
    ],
    ...["pipe-max-size", "mount-max", "leases-enable", "binfmt_misc/status"],
  ],
  vm: [
    ...[
      "mmap_min_addr",
      "overcommit_memory",
      "overcommit_ratio",
      "swappiness",
      "max_map_count",
      "unprivileged_userfaultfd",
    ],
    ...[
      "dirty_ratio",
      "dirty_background_ratio",
      "dirty_bytes",
      "panic_on_oom",
      "oom_kill_allocating_task",
      "zone_reclaim_mode",
    ],
    ...[
      "nr_hugepages",
      "nr_overcommit_hugepages",
      "vfs_cache_pressure",
      "compaction_proactiveness",
      "legacy_va_layout",
    ],
  ],
  net: [
    ...[
      "core/bpf_jit_enable",
      "core/bpf_jit_harden",
      "core/rmem_max",
      "core/wmem_max",
      "core/rmem_default",
      "core/wmem_default",
    ],
    ...[
      "core/somaxconn",
      "core/default_qdisc",
      "core/netdev_max_backlog",
      "core/busy_poll",
      "core/rps_sock_flow_entries",
    ],
    ...[
      "ipv4/ip_forward",
      "ipv4/tcp_congestion_control",
      "ipv4/tcp_syncookies",
      "ipv4/tcp_timestamps",
      "ipv4/tcp_rmem",
    ],
    ...["ipv4/tcp_wmem", "ipv4/tcp_mtu_probing", "ipv4/ip_unprivileged_port_start", "ipv4/ping_group_range"],
    ...[
      "ipv4/ip_local_port_range",
      "ipv4/ip_local_reserved_ports",
      "ipv4/ip_nonlocal_bind",
      "ipv4/fib_multipath_hash_policy",
    ],
    ...["ipv4/icmp_echo_ignore_all", "ipv4/icmp_echo_ignore_broadcasts", "bridge/bridge-nf-call-iptables"],
    ...[
      "accept_redirects",
      "accept_source_route",
      "arp_announce",
      "arp_ignore",
      "arp_filter",
      "forwarding",
      "log_martians",
    ].flatMap((name) => [`ipv4/conf/all/${name}`, `ipv4/conf/default/${name}`]),
    ...["proxy_arp", "rp_filter", "route_localnet", "secure_redirects", "send_redirects"].flatMap((name) => [
      `ipv4/conf/all/${name}`,
      `ipv4/conf/default/${name}`,
    ]),
    ...[
      "accept_ra",
      "accept_redirects",
      "accept_source_route",
      "autoconf",
      "disable_ipv6",
      "forwarding",
      "use_tempaddr",
    ].flatMap((name) => [`ipv6/conf/all/${name}`, `ipv6/conf/default/${name}`]),
  ],
  user: ["max_user_namespaces"],
};

export async function readSysctl(reading: Reading): Promise<ResidueEntry[]> {
  const entries: ResidueEntry[] = [];
  for (const [folder, names] of Object.entries(SYSCTLS))
    for (const name of names) {
      const text = await readText(join(reading.root, "proc/sys", folder, name));
      if (text !== null) entries.push(valued(reading, `${folder}/${name}`, text.trim().replace(/\s+/g, " ")));
    }
  const files = ["/etc/sysctl.conf", "/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d"].map((path) => ({
    path,
  }));
  return [...entries, ...(await readTrees(reading, files))];
}

/** Matches the lines in grub's variables that each boot writes. */
const OF_BOOT = /^(#|recordfail=|boot_success=|boot_indeterminate=|menu_auto_hide=)/;

export async function readBootConfig(reading: Reading): Promise<ResidueEntry[]> {
  const entries = [valued(reading, "kernel command line", await textOf(reading, "/proc/cmdline"))];
  for (const line of linesOf(await readText(join(reading.root, "boot/grub/grubenv"))))
    if (!OF_BOOT.test(line)) entries.push(valued(reading, `grub variable ${line.split("=")[0]}`, line));
  const files = ["/etc/default", "/etc/grub.d", "/etc/kernel", "/etc/initramfs-tools/conf.d"].map((path) => ({ path }));
  return [...entries, ...(await readTrees(reading, files))];
}

const BINFMT = "/proc/sys/fs/binfmt_misc";

export async function readBinaryFormats(reading: Reading): Promise<ResidueEntry[]> {
  const entries: ResidueEntry[] = [];
  for (const name of await namesIn(reading, BINFMT))
    if (name !== "register" && name !== "status")
      entries.push(valued(reading, `${BINFMT}/${name}`, await textOf(reading, `${BINFMT}/${name}`)));
  return [...entries, ...(await readTrees(reading, [{ path: "/etc/binfmt.d" }, { path: "/run/binfmt.d" }]))];
}

export function readEbpf(reading: Reading): Promise<ResidueEntry[]> {
  return settled(reading, async () => {
    const holders: string[] = [];
    for (const pid of await pidsOf(reading))
      for (const { target } of await openFilesOf(reading, pid)) {
        const kind = /^anon_inode:(?:\[?)(bpf[-_]\w+)/.exec(target)?.[1];
        if (kind !== undefined) holders.push(`${kind} of ${await textOf(reading, `/proc/${pid}/comm`)}`);
      }
    return [...(await pinsBelow(reading, "/sys/fs/bpf", 3)), ...presences(reading, holders)];
  });
}

async function pinsBelow(reading: Reading, folder: string, depth: number): Promise<ResidueEntry[]> {
  const entries: ResidueEntry[] = [];
  for (const name of await namesIn(reading, folder)) {
    const path = `${folder}/${name}`;
    entries.push(presence(reading, path));
    if (depth > 1) entries.push(...(await pinsBelow(reading, path, depth - 1)));
  }
  return entries;
}

/**
 * Matches EFI variables that decide what boots. The pattern of EFI variables leaves out BootOrder and BootCurrent, because they change at each
 * deployment.
 */
const EFI =
  /^(Boot[0-9A-F]{4}|BootNext|Driver[0-9A-F]{4}|DriverOrder|SysPrep[0-9A-F]{4}|SecureBoot|SetupMode|PK|KEK|db|dbx|MokList\w*|MokSBState\w*)-/;

export async function readEfiVariables(reading: Reading): Promise<ResidueEntry[]> {
  const entries: ResidueEntry[] = [];
  for (const name of await namesIn(reading, "/sys/firmware/efi/efivars"))
    if (EFI.test(name)) {
      const value = await describeFile(join(reading.root, "sys/firmware/efi/efivars", name));
      if (value !== null) entries.push(valued(reading, name, value));
    }
  return entries;
}
