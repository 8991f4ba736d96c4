import { createHash, randomUUID } from "node:crypto";
import { chmodSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { compileCacheVariables } from "../../../config/compile-cache.ts";
import type { Machine } from "../state/model.ts";
import { OWN_LINUX, ownLinuxFiles } from "./own-linux-image.ts";
import type { HostFile } from "./vendor-data.ts";
import { datasourceFile, hwSyncFiles } from "./vendor-data.ts";

const FOLDERS = [
  "etc/systemd/system",
  "etc/cloud/cloud.cfg.d",
  "usr/bin",
  "usr/sbin",
  "var/lib",
  "var/log",
  "run/units",
  "tmp",
  "root",
  "lib/systemd/system",
  "proc/sys/kernel/random",
  // The simulated host has no disks. The agent finds none, but cannot read the disks of a host without the folder.
  "sys/class/block",
];

const GPUS = 8;

/** The kernel's files about eight AMD GPUs, of which no two of the site have the same id. */
const gpuFiles = ({ systemId }: Machine): HostFile[] =>
  Array.from(
    { length: GPUS },
    (_, number) => `sys/bus/pci/devices/0000:${(0x05 + 0x10 * number).toString(16).padStart(2, "0")}:00.0`,
  ).flatMap((folder) => [
    { path: `${folder}/vendor`, mode: 0o444, content: "0x1002\n" },
    { path: `${folder}/class`, mode: 0o444, content: "0x120000\n" },
    { path: `${folder}/unique_id`, mode: 0o444, content: `${idOf(`${systemId} ${folder}`)}\n` },
  ]);

/** The kernel's files about a port of a network card that is up and has a link. */
const nicFiles = ({ name, macAddress }: Machine["interfaces"][number]): HostFile[] =>
  Object.entries({
    address: macAddress,
    flags: "0x1003",
    carrier: "1",
    speed: "100000",
    "device/vendor": "0x15b3",
  }).map(([file, text]) => ({ path: `sys/class/net/${name}/${file}`, mode: 0o444, content: `${text}\n` }));

const idOf = (text: string): string => createHash("sha256").update(text).digest("hex").slice(0, 16);

const REPOSITORY = new URL("../../../..", import.meta.url).pathname;
const SYSTEMCTL = new URL("systemctl.ts", import.meta.url).pathname;

/** The variables of the host's `systemctl`, as words of a shell. The agent gives its tools none of its own variables. */
const variablesOf = (root: string): string =>
  Object.entries({ SIM_HOST_ROOT: root, ...compileCacheVariables() })
    .map(([name, value]) => `${name}=${quote(value)}`)
    .join(" ");

function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

function put(root: string, file: HostFile): void {
  const path = join(root, file.path);
  mkdirSync(dirname(path), { recursive: true });
  // `put` first removes an existing file, because it cannot overwrite a read-only file of the host's previous boot.
  rmSync(path, { force: true });
  writeFileSync(path, file.content);
  chmodSync(path, file.mode);
}

export interface ImageOptions {
  machine: Machine;
  root: string;
  /** The address `http://HOST:PORT/MAAS` at which the host reaches the simulated MAAS region. */
  maasUrl: string;
  omitHwSyncFiles: boolean;
  ownLinux: boolean;
  hasGpus: boolean;
}

/**
 * Creates the root folder of a simulated host as MAAS's installer leaves it. `installImage` first removes all files in the root folder of the
 * simulated host.
 */
export function installImage(options: ImageOptions): void {
  const { machine, root, ownLinux } = options;
  rmSync(root, { recursive: true, force: true });
  for (const folder of FOLDERS) mkdirSync(join(root, folder), { recursive: true });
  const datasource = datasourceFile(machine, options.maasUrl);
  const files: HostFile[] = [
    { path: "etc/hostname", mode: 0o644, content: `${machine.hostname}\n` },
    { path: "etc/machine-id", mode: 0o444, content: `${randomUUID().replaceAll("-", "")}\n` },
    {
      path: "etc/os-release",
      mode: 0o644,
      content: `ID=${machine.osystem}\nVERSION_CODENAME=${machine.distroSeries}\n`,
    },
    {
      path: "usr/bin/systemctl",
      mode: 0o755,
      content: `#!/bin/sh\n${variablesOf(root)} exec ${quote(process.execPath)} ${quote(SYSTEMCTL)} "$@"\n`,
    },
    // Each file in `run/sessions` stands for one login session on the simulated host. The file's name is the session's id, and the file's content is
    // the rest of the session's line in the output of `loginctl`.
    {
      path: "usr/bin/loginctl",
      mode: 0o755,
      content: [
        "#!/bin/sh",
        `cd ${quote(root)}/run/sessions 2>/dev/null || exit 0`,
        'case "$1" in',
        'list-sessions) for one in *; do [ -f "$one" ] && echo "$one $(cat "$one")"; done; exit 0 ;;',
        'terminate-session) rm -f "$2" ;;',
        '*) echo "Unknown command verb $1." >&2; exit 1 ;;',
        "esac",
        "",
      ].join("\n"),
    },
    {
      path: "usr/bin/muster-agent",
      mode: 0o755,
      content: ownLinux
        ? `#!/bin/sh\nexec ${quote(process.execPath)} ${quote(OWN_LINUX)} ${quote(root)}\n`
        : `#!/bin/sh\nexec ${quote(process.execPath)} ${quote(join(REPOSITORY, "agent/main.ts"))} "$@"\n`,
    },
    ...(ownLinux ? ownLinuxFiles() : []),
    { path: "proc/self/mountinfo", mode: 0o444, content: "21 1 0:20 / / rw,relatime - tmpfs root rw\n" },
    ...machine.interfaces.flatMap(nicFiles),
    ...(options.hasGpus && !ownLinux ? gpuFiles(machine) : []),
    ...(datasource === null ? [] : [datasource]),
    ...(machine.enableHwSync && !options.omitHwSyncFiles ? hwSyncFiles(machine, options.maasUrl) : []),
  ];
  for (const file of files) put(root, file);
  newBoot(root);
}

export function newBoot(root: string): void {
  put(root, { path: "proc/sys/kernel/random/boot_id", mode: 0o444, content: `${randomUUID()}\n` });
}

/** Writes the supervisor's address into the file from which the simulated host's `systemctl` reads it. */
export function tellSupervisor(root: string, control: string, systemId: string): void {
  put(root, {
    path: "run/simulated-host.json",
    mode: 0o644,
    content: JSON.stringify({ control, system_id: systemId }),
  });
}
