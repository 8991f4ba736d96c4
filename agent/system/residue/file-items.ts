import type { ResidueItem } from "../../../shared/residue/items.ts";
import type { ResidueEntry } from "../../../shared/residue/snapshot.ts";
import type { Reading } from "./reading.ts";
import { readTrees, type Tree } from "./trees.ts";

/** Matches backup files of editors, package tools and daemons, which the residue snapshot leaves out. */
const BESIDE = /(~|[.]dpkg-(old|dist|new)|[.]ucf-(old|dist))$/;
/**
 * The folders below /usr/lib to which packages add systemd units. Each folder of PACKAGED_UNITS becomes one entry of the residue snapshot, because
 * such a folder contains hundreds of files.
 */
const PACKAGED_UNITS = ["/usr/lib/systemd/system", "/usr/lib/systemd/system-generators", "/usr/lib/systemd/user"];
const LIBRARY_FOLDERS = ["x86_64-linux-gnu", "aarch64-linux-gnu"].map((name) => `/usr/lib/${name}`);
/** Names of programs that log users in, that the agent runs for its residue snapshot, or that run other programs. */
const CRITICAL = [
  ...["bash", "dash", "login", "passwd", "su", "sudo", "ssh", "ssh-keygen", "systemctl", "loginctl", "journalctl"],
  ...[
    "dpkg",
    "dpkg-query",
    "find",
    "ps",
    "ss",
    "ls",
    "lsof",
    "mount",
    "perl",
    "python3",
    "docker",
    "containerd",
    "runc",
  ],
  ...["nvidia-smi", "env", "cat", "chmod", "chown", "kmod"],
].map((name) => `/usr/bin/${name}`);
const CRITICAL_SBIN = [
  ...["sshd", "cron", "atd", "agetty", "ip", "nft", "getcap", "losetup", "modprobe", "rsyslogd", "chronyd", "auditd"],
].map((name) => `/usr/sbin/${name}`);
const CRITICAL_LIBRARIES = [
  "libc.so.6",
  "libpam.so.0",
  "libcrypto.so.3",
  "libcap.so.2",
  "libselinux.so.1",
  "libsystemd.so.0",
];

const at = (...paths: readonly string[]): readonly Tree[] => paths.map((path) => ({ path, except: BESIDE }));
const folded = (...paths: readonly string[]): readonly Tree[] => paths.map((path) => ({ path, depth: 0 }));

/** The files and folders of each item of the residue snapshot that compares the content of files. */
const TREES = {
  sshd_config: [{ path: "/etc/ssh", except: /^(ssh_host_.*|moduli|.*~|.*[.]dpkg-(old|dist|new))$/ }],
  privileges: at("/etc/sudoers", "/etc/sudoers.d", "/etc/doas.conf", "/etc/doas.d", "/etc/polkit-1"),
  login_stack: [
    ...at("/etc/pam.conf", "/etc/pam.d", "/etc/security", "/etc/nsswitch.conf", "/etc/login.defs", "/etc/shells"),
    ...folded(...LIBRARY_FOLDERS.map((folder) => `${folder}/security`), "/usr/lib/security"),
  ],
  system_units: [
    { path: "/etc/systemd", except: BESIDE },
    ...at("/usr/local/lib/systemd"),
    ...folded(...PACKAGED_UNITS),
  ],
  cron_and_at: [
    ...at("/etc/crontab", "/etc/anacrontab", "/etc/cron.allow", "/etc/cron.deny", "/etc/at.allow", "/etc/at.deny"),
    ...at(
      "/etc/cron.d",
      "/etc/cron.hourly",
      "/etc/cron.daily",
      "/etc/cron.weekly",
      "/etc/cron.monthly",
      "/etc/cron.yearly",
    ),
    { path: "/var/spool/cron", except: /^([.]SEQ|tmp[.].*|.*~)$/ },
    { path: "/var/spool/at", except: /^[.]SEQ$/ },
  ],
  preload: at("/etc/ld.so.preload", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/environment", "/etc/environment.d"),
  mount_config: at(
    "/etc/fstab",
    "/etc/crypttab",
    "/etc/autofs.conf",
    "/etc/auto.master",
    "/etc/auto.master.d",
    "/etc/exports",
    "/etc/exports.d",
  ),
  critical_files: at(
    ...CRITICAL,
    ...CRITICAL_SBIN,
    ...LIBRARY_FOLDERS.flatMap((folder) => CRITICAL_LIBRARIES.map((name) => `${folder}/${name}`)),
    "/usr/lib/systemd/systemd",
    "/usr/lib/systemd/systemd-logind",
    "/usr/lib/openssh/sftp-server",
    "/usr/lib/muster/agent/runtime/node",
  ),
  package_sources: [{ path: "/etc/apt", depth: 3, except: BESIDE }],
  module_config: [
    ...at("/etc/modprobe.d", "/etc/modules", "/etc/modules-load.d", "/etc/initramfs-tools/modules", "/etc/dkms"),
    ...at("/etc/initramfs-tools/hooks", "/etc/initramfs-tools/scripts"),
    { path: "/var/lib/dkms", depth: 1 },
  ],
  network_config: at(
    ...[
      "/etc/netplan",
      "/etc/network",
      "/etc/networkd-dispatcher",
      "/etc/NetworkManager",
      "/etc/dhcp",
      "/etc/wireguard",
    ],
    ...["/etc/hosts", "/etc/hosts.allow", "/etc/hosts.deny", "/etc/resolvconf", "/etc/gai.conf", "/etc/iproute2"],
  ),
  udev_rules: at("/etc/udev", "/run/udev/rules.d"),
  tmpfiles: at("/etc/tmpfiles.d", "/etc/sysusers.d", "/run/tmpfiles.d", "/run/sysusers.d"),
  shell_profiles: at(
    ...[
      "/etc/profile",
      "/etc/profile.d",
      "/etc/bash.bashrc",
      "/etc/bash_completion.d",
      "/etc/zsh",
      "/etc/skel",
      "/etc/inputrc",
    ],
    ...[".bashrc", ".profile", ".bash_profile", ".bash_login", ".bash_logout", ".zshrc", ".ssh/rc", ".ssh/config"].map(
      (name) => `/root/${name}`,
    ),
  ),
  dbus: at("/etc/dbus-1", "/usr/local/share/dbus-1"),
  apparmor: [
    { path: "/etc/apparmor.d", depth: 1, except: /^(cache.*|.*[.]dpkg-(old|dist|new))$/ },
    ...at("/etc/apparmor"),
  ],
  trust_store: [
    ...at(
      "/usr/local/share/ca-certificates",
      "/etc/ca-certificates.conf",
      "/etc/ca-certificates",
      "/etc/ssl/openssl.cnf",
    ),
    ...folded("/etc/ssl/certs", "/etc/ssl/private"),
  ],
  time_servers: at("/etc/chrony", "/etc/ntp.conf", "/etc/ntpsec", "/etc/openntpd"),
  host_identity: at("/etc/machine-id", "/etc/hostname"),
  boot_files: [{ path: "/boot", except: /^(grubenv|lost\+found)$/ }],
  cloud_init: at("/etc/cloud", "/var/lib/cloud/scripts"),
} as const satisfies Partial<Record<ResidueItem, readonly Tree[]>>;

export type FileItem = keyof typeof TREES;
export const readFileItem =
  (item: FileItem) =>
  (reading: Reading): Promise<ResidueEntry[]> =>
    readTrees(reading, TREES[item]);
