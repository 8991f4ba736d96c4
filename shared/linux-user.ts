import { z } from "zod";

/** A tenant's account never gets a reserved name, which is a name of accounts or groups of a Linux distribution, its packages or an image. */
export const RESERVED_LOGIN_NAMES: ReadonlySet<string> = new Set([
  // Accounts and groups of Debian's `base-passwd` and of Red Hat's `setup`.
  ...[
    "root",
    "daemon",
    "bin",
    "sys",
    "sync",
    "games",
    "man",
    "lp",
    "mail",
    "news",
    "uucp",
    "proxy",
    "www-data",
    "backup",
  ],
  ...["list", "irc", "gnats", "nobody", "nogroup", "adm", "tty", "disk", "dialout", "fax", "voice", "cdrom", "floppy"],
  ...[
    "tape",
    "sudo",
    "wheel",
    "audio",
    "dip",
    "operator",
    "src",
    "shadow",
    "utmp",
    "video",
    "sasl",
    "plugdev",
    "staff",
  ],
  ...["users", "kvm", "render", "sgx", "input", "crontab", "halt", "shutdown", "ftp", "kmem", "mem", "lock", "ssh"],
  // Accounts and groups of services such as sshd, Docker and PostgreSQL, whose names no tenant's account gets.
  ...[
    "messagebus",
    "syslog",
    "sshd",
    "ntp",
    "chrony",
    "tcpdump",
    "tss",
    "uuidd",
    "landscape",
    "fwupd-refresh",
    "pollinate",
  ],
  ...["polkitd", "rtkit", "avahi", "dnsmasq", "usbmux", "netdev", "rdma", "postfix", "postgres", "postdrop", "apache"],
  ...[
    "docker",
    "containerd",
    "podman",
    "lxd",
    "lxc",
    "libvirt",
    "libvirt-qemu",
    "munge",
    "slurm",
    "snapd",
    "snap_daemon",
  ],
  ...["kubelet", "kube", "etcd", "prometheus", "node_exporter", "telegraf", "nvidia-persistenced", "dcgm", "dbus"],
  // Accounts that operating system images and their first boot make, and with which the operator logs in to a host.
  ...["ubuntu", "debian", "centos", "rocky", "almalinux", "fedora", "cloud-user", "ec2-user", "opc", "admin"],
  ...["administrator", "maintenance", "pi"],
]);

/** Prefixes of account names that belong to systemd, to the software of the host's operator, or to Muster. */
const RESERVED_PREFIXES = ["systemd", "muster", "maas", "weka", "nvidia", "nvsm", "cloud-init", "_"];

const PATTERN = /^[a-z][a-z0-9_-]{0,31}$/;

export const isReservedLoginName = (name: string): boolean =>
  RESERVED_LOGIN_NAMES.has(name) || RESERVED_PREFIXES.some((prefix) => name.startsWith(prefix));

/** The name of a tenant's account is never the name of an account that the host's own software uses. */
export const LoginUser = z
  .string()
  .regex(PATTERN, "must begin with a lower-case letter and have at most 32 lower-case letters, digits, '_' and '-'")
  .refine((name) => !isReservedLoginName(name), "is a name that the host's own software uses; choose another name");
export type LoginUser = z.output<typeof LoginUser>;
