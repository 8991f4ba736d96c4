import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { HostFolder } from "../hub/host-folder.ts";
import { type Driver, gpuXml, XML_HEAD, XML_TAIL, type XmlGpu } from "./nvidia-xml.ts";

/**
 * A folder that stands for a host with NVIDIA GPUs. Small programs stand for the tools of the simulated host. The simulated tools share the host's
 * state in files: services, kernel modules, GPUs, and processes that hold a device.
 */

const DRIVER: Driver = "575.51.02";
/** The simulated NVIDIA driver has the major number 1 of memory devices, because a test cannot open a device of an absent driver. */
const PROC_DEVICES = "Character devices:\n  1 nvidia-uvm\n226 drm\n\nBlock devices:\n  7 loop\n";

/**
 * At each of its calls, a simulated tool adds one character to the file `ticks`. If the file `kill-at` contains a call's number, the tool kills its
 * calling process at that call, before or after the tool's own work. If the folder `hang` has a file for a tool's command, the simulated tool never
 * ends and ignores SIGTERM. A holder of a GPU has the device open as its file descriptor 3, which a process that is ending no longer has.
 */
const PRELUDE = `S="$MUSTER_ROOT/state"
tick() { printf 'x' >> "$S/ticks"; n=$(wc -c < "$S/ticks"); case $(cat "$S/kill-at" 2>/dev/null) in "before $n") kill -9 $PPID; exit 1 ;; "after $n") trap 'kill -9 $PPID' EXIT ;; esac; }
hang() { if [ -e "$S/hang/$1" ]; then trap '' TERM; exec sleep 1000; fi; }
has() { grep -q "^$1 " "$MUSTER_ROOT/proc/modules"; }
held() { for f in "$S"/holders/*; do [ -L "/proc/\${f##*/}/fd/3" ] && return 0; done; return 1; }
running() { [ "$(cat "$S/services/$1.service" 2>/dev/null)" = active ]; }
freshen() { [ -e "$S/gpus/$1/broken" ] || cp "$S/gpus/$1/clean" "$S/gpus/$1/now"; }
`;

const NVIDIA_SMI = `${PRELUDE}
fabric() { if running nvidia-fabricmanager; then echo '<state>Completed</state><status>Success</status>'; else echo '<state>In Progress</state><status>N/A</status>'; fi; }
case "$*" in
"-q -x") tick; hang query
  has nvidia || { echo "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."; exit 9; }
  n=0; for g in "$S"/gpus/*/now; do [ -e "$g" ] && n=$((n+1)); done
  sed "s/@COUNT@/$n/" "$S/head"; for g in "$S"/gpus/*/now; do [ -e "$g" ] && sed "s|<state>@FABRIC@</state><status>@FABRIC@</status>|$(fabric)|" "$g"; done; cat "$S/tail" ;;
*" -pm "*) tick; for g in "$S"/gpus/*; do case $(cat "$g/pci") in "$2") for x in now clean; do
    [ -e "$g/$x" ] && sed -i "s|<persistence_mode>.*</persistence_mode>|<persistence_mode>$([ "$4" = 1 ] && echo Enabled || echo Disabled)</persistence_mode>|" "$g/$x"; done ;; esac; done ;;
"--gpu-reset -i "*) tick; hang reset
  refuse() { echo "GPU could not be reset: $1"; exit 255; }
  has nvidia_drm && refuse "In use by another client"
  held && refuse "In use by another client"
  running nvidia-persistenced && refuse "In use by another client"
  for g in "$S"/gpus/*/now; do grep -q '<persistence_mode>Enabled' "$g" && refuse "In use by another client"; done
  [ -e "$S/reset-unsupported" ] && { echo "Resetting GPU is not supported."; exit 3; }
  if [ -e "$S/nvswitch" ]; then for g in "$S"/gpus/*; do case ",$3," in *",$(cat "$g/uuid"),"*) ;; *) refuse "peer GPU $(cat "$g/pci") must be reset too" ;; esac; done; fi
  for g in "$S"/gpus/*; do i=\${g##*/}; case ",$3," in *",$(cat "$g/uuid"),"*)
    [ -e "$S/lost-at-reset" ] && [ "$(cat "$S/lost-at-reset")" = "$i" ] && { rm -r "$g" "$MUSTER_ROOT/sys/bus/pci/devices/$(cat "$g/pci")"; continue; }
    freshen "$i"; echo "GPU $(cat "$g/pci") was successfully reset." ;; esac; done ;;
*) exit 2 ;;
esac`;

const SYSTEMCTL = `${PRELUDE}
tick
case $1 in
list-units) for f in "$S"/services/*.service; do [ -e "$f" ] && echo "\${f##*/} loaded $(cat "$f") - A service"; done ;;
stop) hang "stop-$2"; [ -e "$S/stop-fails" ] && [ "$(cat "$S/stop-fails")" = "$2" ] && { echo "Job for $2 failed." >&2; exit 1; }
  echo "stop $2" >> "$S/actions"; echo inactive > "$S/services/$2"; rm -f "$S/holders/$(cat "$S/pids/$2" 2>/dev/null || echo none)" ;;
start) [ -e "$S/start-fails" ] && [ "$(cat "$S/start-fails")" = "$2" ] && { echo "Job for $2 failed." >&2; exit 1; }
  echo "start $2" >> "$S/actions"; echo active > "$S/services/$2" ;;
esac`;

/** Stands for rmmod: unloads a kernel module, unless another module or a process uses the module. */
const RMMOD = `${PRELUDE}
tick; hang rmmod
M="$MUSTER_ROOT/proc/modules"
has "$1" || { echo "rmmod: ERROR: Module $1 is not currently loaded" >&2; exit 1; }
users=$(grep "^$1 " "$M" | cut -d' ' -f4)
[ "$users" = - ] || { echo "rmmod: ERROR: Module $1 is in use by: $users" >&2; exit 1; }
if [ "$1" = nvidia ] && { held || running nvidia-fabricmanager || running nvidia-persistenced; }; then echo "rmmod: ERROR: Module nvidia is in use" >&2; exit 1; fi
[ -e "$S/module-stays" ] && [ "$(cat "$S/module-stays")" = "$1" ] && { echo "rmmod: ERROR: Module $1 is in use" >&2; exit 1; }
echo "rmmod $1" >> "$S/actions"
sed -i -e "/^$1 /d" -e "s/\\b$1,//" -e 's/ \\([0-9]*\\)  Live/ \\1 - Live/' "$M"`;

const MODPROBE = `${PRELUDE}
tick
M="$MUSTER_ROOT/proc/modules"
has "$1" && exit 0
echo "modprobe $1" >> "$S/actions"
case $1 in
nvidia) echo "nvidia 56717312 0 - Live 0x0 (OE)" >> "$M"; for g in "$S"/gpus/*; do freshen "\${g##*/}"; done ;;
nvidia_modeset) echo "nvidia_modeset 1814528 0 - Live 0x0 (OE)" >> "$M"; sed -i 's/^\\(nvidia [0-9]* [0-9]*\\) -/\\1 nvidia_modeset,/; t; s/^\\(nvidia [0-9]* [0-9]* [a-z_,]*\\)/\\1nvidia_modeset,/' "$M" ;;
nvidia_drm) echo "nvidia_drm 122880 0 - Live 0x0 (OE)" >> "$M"; sed -i 's/^\\(nvidia_modeset [0-9]* [0-9]*\\) -/\\1 nvidia_drm,/' "$M" ;;
*) exit 1 ;;
esac`;

const JOURNALCTL = `${PRELUDE}
tick; [ -e "$S/journal-fails" ] && exit 1
cat "$S/kernel.log" 2>/dev/null || true`;

const MODULES = `nvidia_drm 122880 0 - Live 0x0 (OE)
nvidia_modeset 1814528 1 nvidia_drm, Live 0x0 (OE)
nvidia 56717312 1 nvidia_modeset, Live 0x0 (OE)
`;

export const PCI = (n: number): string => `0000:${(0x10 + n).toString(16)}:00.0`;
const UUID = (n: number): string => `GPU-00000000-0000-0000-0000-00000000000${n}`;

export interface NvidiaHostOptions {
  readonly gpus?: number;
  readonly nvswitch?: boolean;
  readonly persistence?: boolean;
  readonly services?: readonly string[];
  readonly modules?: string;
}

export class NvidiaHost extends HostFolder {
  readonly #children: ChildProcess[] = [];
  readonly #options: NvidiaHostOptions;

  constructor(options: NvidiaHostOptions = {}) {
    super();
    this.#options = options;
    const count = options.gpus ?? 2;
    this.write("proc/devices", PROC_DEVICES);
    this.write("proc/modules", options.modules ?? MODULES);
    this.write("proc/driver/nvidia/params", 'RmLogonRC: 1\nRegistryDwords: ""\nRegistryDwordsPerDevice: ""\n');
    this.write("state/head", XML_HEAD(DRIVER, 0).replace("<attached_gpus>0<", "<attached_gpus>@COUNT@<"));
    this.write("state/tail", XML_TAIL);
    this.write("state/ticks", "");
    this.write("state/holders/.keep", "");
    for (const unit of options.services ?? ["nvidia-persistenced"]) this.state(`services/${unit}.service`, "active\n");
    if (options.nvswitch === true) this.state("nvswitch");
    for (let n = 0; n < count; n += 1) {
      this.write(`proc/driver/nvidia/gpus/${PCI(n)}/registry`, 'Binary: ""\n');
      this.write(`sys/bus/pci/devices/${PCI(n)}/vendor`, "0x10de\n");
      this.write(`sys/bus/pci/devices/${PCI(n)}/class`, "0x030200\n");
      this.write(`state/gpus/${n}/pci`, PCI(n));
      this.write(`state/gpus/${n}/uuid`, UUID(n));
      this.gpu(n, {});
      this.gpu(n, {}, "clean");
    }
    for (const [name, script] of Object.entries({
      "nvidia-smi": NVIDIA_SMI,
      systemctl: SYSTEMCTL,
      rmmod: RMMOD,
      modprobe: MODPROBE,
      journalctl: JOURNALCTL,
      cat: `${PRELUDE}\ntick; /bin/cat "$@"`,
    }))
      this.write(`usr/bin/${name}`, `#!/bin/sh\n${script}\n`, 0o755);
  }

  state(name: string, text = ""): void {
    this.write(`state/${name}`, text);
  }

  gpu(n: number, differs: Partial<XmlGpu>, which: "now" | "clean" = "now"): void {
    const fabric = this.#options.nvswitch === true ? { state: "@FABRIC@", status: "@FABRIC@" } : undefined;
    const persistence = this.#options.persistence === true && which === "now" ? "Enabled" : "Disabled";
    const gpu: XmlGpu = {
      pci: PCI(n),
      uuid: UUID(n),
      driver: DRIVER,
      persistence,
      ...(fabric && { fabric }),
      ...differs,
    };
    this.write(`state/gpus/${n}/${which}`, gpuXml(gpu));
  }

  /**
   * Starts a real process that holds a device with the major number 1 open. The process that `holder` starts opens a new device file, or `/dev/zero`
   * if the test may not create device files.
   */
  async holder(options: { readonly deaf?: boolean; readonly unit?: string } = {}): Promise<number> {
    const node = this.path(`device-${this.#children.length}`);
    const made = spawnSync("mknod", [node, "c", "1", "5"]).status === 0;
    const trap = options.deaf === true ? "trap '' TERM; " : "";
    // The standard input and output of the started shell are pipes, so that the shell holds only the given device.
    const child = spawn(
      "/bin/sh",
      ["-c", `${trap}exec 3< "$0"; echo ready; while :; do sleep 0.05 3<&- <&1; done`, made ? node : "/dev/zero"],
      {
        stdio: ["pipe", "pipe", "pipe"],
      },
    );
    this.#children.push(child);
    const pid = child.pid ?? -1;
    await new Promise<void>((resolve, reject) => {
      child.stdout.once("data", () => resolve());
      child.once("exit", () => reject(new Error("The holder ended before it was ready.")));
    });
    symlinkSync(`/proc/${pid}`, join(this.root, "proc", String(pid)));
    this.state(`holders/${pid}`);
    return pid;
  }

  override remove(): void {
    for (const child of this.#children) child.kill("SIGKILL");
    super.remove();
  }

  actions(): string[] {
    return this.has("state/actions") ? this.read("state/actions").trimEnd().split("\n") : [];
  }
  ticks(): number {
    return this.read("state/ticks").length;
  }
  running(): string[] {
    return (this.#options.services ?? ["nvidia-persistenced"]).filter(
      (unit) => this.read(`state/services/${unit}.service`).trim() === "active",
    );
  }
  modules(): string[] {
    return this.read("proc/modules")
      .split("\n")
      .flatMap((line) => (line === "" ? [] : [line.split(" ")[0] ?? ""]))
      .sort();
  }
}
