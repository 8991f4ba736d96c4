/**
 * The rules by which the hub judges the items of a residue snapshot, the agent's report of what is on a host after a tenant. The rule `same` demands
 * that a residue item has the same entries as in the node's baseline, the snapshot from before the first tenant. The rule `no_more` allows a residue
 * item to have fewer entries than in the node's baseline, but no new or changed entry. The rule `disks_stay` demands the same as `no_more`, and that
 * no mount of a disk is missing. The rule `none` allows no entry at all in a residue item, for example no process that another one traces. The rule
 * `tenant` allows no entry, and holds for residue items that the agent reads only if it knows the tenant's account.
 */
export type ResidueRule = "same" | "no_more" | "disks_stay" | "none" | "tenant";

export interface ResidueItemSpec {
  /** The name that operators see for the residue item. */
  readonly title: string;
  readonly rule: ResidueRule;
  /** The files and folders of the host that the agent reads for a residue item, for example `/etc/passwd`. */
  readonly reads: string;
}

/** The closed list of residue items, which docs/residue.md explains, names what a tenant can leave on a host. */
export const RESIDUE_ITEMS = {
  accounts: {
    title: "Accounts and groups",
    rule: "same",
    reads: "/etc/passwd, group, shadow, gshadow, subuid, subgid",
  },
  authorized_keys: {
    title: "SSH keys that may log in",
    rule: "same",
    reads: ".ssh/authorized_keys of each home, as fingerprints",
  },
  sshd_config: { title: "SSH server", rule: "same", reads: "/etc/ssh without the host keys" },
  privileges: {
    title: "sudo, polkit and doas",
    rule: "same",
    reads: "/etc/sudoers, /etc/sudoers.d, /etc/polkit-1, /etc/doas.conf",
  },
  login_stack: {
    title: "PAM, NSS and login shells",
    rule: "same",
    reads: "/etc/pam.d, /etc/security, /etc/nsswitch.conf, /etc/login.defs, /etc/shells, PAM and NSS libraries",
  },
  user_units: {
    title: "Lingering users and units of users",
    rule: "no_more",
    reads: "/var/lib/systemd/linger, .config/systemd of each home",
  },
  system_units: {
    title: "Units, timers, drop-ins and generators of the system",
    rule: "same",
    reads: "/etc/systemd, /usr/local/lib/systemd, folders of units that packages install",
  },
  runtime_units: {
    title: "Units that last until the next boot",
    rule: "no_more",
    reads: "/run/systemd/system, /run/systemd/transient",
  },
  cron_and_at: {
    title: "Jobs of cron and at",
    rule: "same",
    reads: "/etc/crontab, /etc/anacrontab, /etc/cron.*, /var/spool/cron, /var/spool/at",
  },
  tenant_processes: { title: "Processes of the tenant", rule: "tenant", reads: "/proc/*/status" },
  user_processes: {
    title: "Processes of users, sessions and containers",
    rule: "no_more",
    reads: "/proc/*/status, cgroup and exe",
  },
  unpackaged_processes: {
    title: "Processes of programs that are deleted or outside the system's folders",
    rule: "no_more",
    reads: "/proc/*/exe",
  },
  fake_kernel_threads: {
    title: "Processes that pretend to be kernel threads",
    rule: "none",
    reads: "/proc/*/stat and cmdline",
  },
  traced_processes: { title: "Processes that another process traces", rule: "none", reads: "/proc/*/status" },
  preload: {
    title: "Libraries and variables for every process",
    rule: "same",
    reads: "/etc/ld.so.preload, /etc/ld.so.conf(.d), /etc/environment",
  },
  listening_sockets: {
    title: "Listening sockets",
    rule: "no_more",
    reads: "/proc/net/tcp, udp and raw, with the processes that hold them",
  },
  containers: {
    title: "Containers, images and volumes",
    rule: "no_more",
    reads: "state folders of docker, containerd, podman, apptainer, enroot, k3s, lxd and slurm",
  },
  namespaces: { title: "Namespaces", rule: "no_more", reads: "/proc/*/ns, /run/netns, /run/docker/netns" },
  mounts: { title: "Mounts in every mount namespace", rule: "disks_stay", reads: "/proc/*/mountinfo" },
  mount_config: {
    title: "Configured mounts",
    rule: "same",
    reads: "/etc/fstab, /etc/crypttab, /etc/auto.*, /etc/exports",
  },
  disks: {
    title: "Disks, and controllers without a disk",
    rule: "same",
    reads: "/sys/class/block, /sys/class/nvme, storage controllers of /sys/bus/pci",
  },
  block_layers: {
    title: "Layers of block devices",
    rule: "no_more",
    reads: "/sys/class/block, iSCSI and NVMe over fabrics, ZFS pools",
  },
  swap: { title: "Swap", rule: "same", reads: "/proc/swaps" },
  hugepages: { title: "Reserved huge pages", rule: "same", reads: "/sys/kernel/mm" },
  shared_memory: {
    title: "Shared memory, IPC and message queues",
    rule: "no_more",
    reads: "/dev/shm, /proc/sysvipc, /dev/mqueue",
  },
  temporary_files: { title: "Temporary files", rule: "no_more", reads: "/tmp, /var/tmp, /run/user" },
  crash_dumps: {
    title: "Crash dumps",
    rule: "no_more",
    reads: "/var/lib/systemd/coredump, /var/crash, /var/lib/apport, /sys/fs/pstore",
  },
  histories_and_caches: {
    title: "Histories and caches in homes",
    rule: "no_more",
    reads: "known files of each home, without root's shell history",
  },
  credentials: {
    title: "Keys, tickets and logins",
    rule: "no_more",
    reads: "known files of each home, /tmp/krb5cc_*, /proc/key-users",
  },
  ownerless_files: {
    title: "Files without an account",
    rule: "no_more",
    reads: "owner and group of every file on a local file system",
  },
  tenant_files: {
    title: "Files of the tenant",
    rule: "tenant",
    reads: "owner of every file on a local file system, journals of users",
  },
  setuid_files: {
    title: "Programs that run with another user's rights",
    rule: "same",
    reads: "mode, owner and content of every setuid or setgid file",
  },
  file_capabilities: { title: "Programs with capabilities", rule: "same", reads: "getcap for every executable file" },
  packages: { title: "Installed packages", rule: "same", reads: "/var/lib/dpkg/status" },
  package_files: { title: "Changed files of packages", rule: "no_more", reads: "dpkg --verify" },
  critical_files: {
    title: "Programs and libraries that the checks rely on",
    rule: "same",
    reads: "mode, owner and content of a fixed list",
  },
  package_sources: { title: "Sources of packages", rule: "same", reads: "/etc/apt" },
  kernel_modules: {
    title: "Kernel modules without a file on the host",
    rule: "no_more",
    reads: "/proc/modules, modules.dep, /proc/sys/kernel/tainted",
  },
  module_config: {
    title: "Configuration of kernel modules",
    rule: "same",
    reads: "/etc/modprobe.d, /etc/modules-load.d, /var/lib/dkms, added folders of /lib/modules",
  },
  ebpf: { title: "eBPF programs", rule: "no_more", reads: "/sys/fs/bpf, /proc/*/fd and /proc/*/task/*/fd" },
  firewall: { title: "Firewall", rule: "same", reads: "nft list ruleset, iptables-save" },
  network: {
    title: "Interfaces, routes, rules and queues",
    rule: "same",
    reads: "ip and tc, without what DHCP and router advertisements set",
  },
  network_config: {
    title: "Configuration of the network",
    rule: "same",
    reads: "/etc/netplan, /etc/network, /etc/hosts, /etc/resolv.conf",
  },
  sysctl: {
    title: "Kernel settings",
    rule: "same",
    reads: "a fixed list of /proc/sys, /etc/sysctl.conf, /etc/sysctl.d",
  },
  boot_config: {
    title: "Kernel command line and boot loader",
    rule: "same",
    reads: "/proc/cmdline, /etc/default, grub's variables",
  },
  boot_files: { title: "Kernels, initrds and boot programs", rule: "same", reads: "content of every file below /boot" },
  efi_variables: {
    title: "Variables of the firmware",
    rule: "no_more",
    reads: "boot entries and Secure Boot keys in efivars",
  },
  udev_rules: { title: "udev rules", rule: "same", reads: "/etc/udev, /run/udev/rules.d" },
  tmpfiles: {
    title: "tmpfiles and sysusers",
    rule: "same",
    reads: "/etc/tmpfiles.d, /etc/sysusers.d, /run/tmpfiles.d",
  },
  binary_formats: {
    title: "Interpreters of binary formats",
    rule: "same",
    reads: "/proc/sys/fs/binfmt_misc, /etc/binfmt.d",
  },
  shell_profiles: {
    title: "Start files of shells",
    rule: "same",
    reads: "/etc/profile(.d), /etc/bash.bashrc, /etc/skel, root's start files",
  },
  dbus: { title: "D-Bus services", rule: "same", reads: "/etc/dbus-1, /usr/local/share/dbus-1" },
  apparmor: { title: "AppArmor profiles", rule: "same", reads: "/etc/apparmor.d, /etc/apparmor" },
  host_identity: {
    title: "Identity of the host",
    rule: "same",
    reads: "/etc/machine-id, /etc/hostname, SSH host keys",
  },
  cloud_init: { title: "cloud-init", rule: "same", reads: "/etc/cloud, user-data, vendor-data and scripts" },
  trust_store: {
    title: "Trusted certificates and proxies",
    rule: "same",
    reads: "/usr/local/share/ca-certificates, /etc/ssl",
  },
  time_servers: { title: "Time servers", rule: "same", reads: "/etc/chrony, /etc/ntp.conf, /etc/ntpsec" },
  gpu_state: {
    title: "State of the GPUs",
    rule: "same",
    reads: "/proc/driver/nvidia, nvidia-smi -q -x, partitions of AMD GPUs",
  },
  gpu_holders: {
    title: "Processes that hold a GPU",
    rule: "no_more",
    reads: "/proc/*/fd and /proc/*/task/*/fd, by device number",
  },
  rdma: {
    title: "RDMA",
    rule: "no_more",
    reads: "/sys/class/infiniband, virtual functions, processes that hold verbs",
  },
} as const satisfies Record<string, ResidueItemSpec>;

export type ResidueItem = keyof typeof RESIDUE_ITEMS;
export const RESIDUE_ITEM_NAMES = Object.keys(RESIDUE_ITEMS) as readonly ResidueItem[];
export const ruleOf = (item: ResidueItem): ResidueRule => RESIDUE_ITEMS[item].rule;
/**
 * The residue items of the rules `same` and `no_more`, which a node's baseline must contain, because the hub compares them with the baseline. If the
 * baseline of a node lacks a residue item of the rule `same` or `no_more`, no comparison finds the node's host clean.
 */
export const COMPARED_ITEMS = RESIDUE_ITEM_NAMES.filter((item) => ["same", "no_more"].includes(ruleOf(item)));
