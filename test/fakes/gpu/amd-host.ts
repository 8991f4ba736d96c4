import { symlinkSync } from "node:fs";
import { HostFolder } from "../hub/host-folder.ts";

/**
 * A folder that stands for a host with AMD GPUs. Small programs stand for the tools of the simulated host, and share the host's state in files. The
 * simulated outputs of amd-smi follow the field names that AMD documents and that published outputs of amd-smi show.
 */

/** The amd-smi of ROCm 6 prints a list of GPUs. The amd-smi of ROCm 7 prints an object with the list in `gpu_data`. */
export type Release = "6.2" | "7.0";
export type AmdCommand = "static" | "metric" | "bad-pages" | "process";

export interface AmdGpu {
  readonly pci: string;
  readonly hive?: string;
  readonly uncorrectable?: number | string;
  readonly deferred?: number | string;
  readonly pending?: unknown;
  readonly xgmi?: unknown;
  readonly processes?: readonly unknown[];
  readonly serial?: string;
  readonly vramUsed?: number;
  readonly computePartition?: string;
  readonly shader?: boolean;
  readonly ecc?: boolean;
}

export const AMD_PCI = (n: number): string => `0000:0${n + 5}:00.0`;
const IDLE_PROCESSES = [{ process_info: "No running processes detected" }];

export function amdOutput(command: AmdCommand, gpus: readonly AmdGpu[], release: Release = "7.0"): string {
  const rows = gpus.map((gpu, index) => ({ gpu: index, ...fields(command, gpu, release) }));
  // If its user is not in certain groups, amd-smi prints a warning line before its JSON.
  const warning = command === "static" ? "WARNING: User is missing the following required groups: render\n" : "";
  return `${warning}${JSON.stringify(release === "7.0" && command !== "process" ? { gpu_data: rows } : rows, null, 4)}\n`;
}

function fields(command: AmdCommand, gpu: AmdGpu, release: Release): object {
  const firmware = {
    name: "AMD MI300X",
    build_date: "2025/01/01",
    part_number: "113-M3000100-102",
    version: "022.040",
  };
  switch (command) {
    case "static":
      return {
        asic: { market_name: "AMD Instinct MI300X", asic_serial: gpu.serial ?? "0x7A9F", oam_id: 1 },
        bus: { bdf: gpu.pci, max_pcie_width: 16 },
        ...(release === "7.0" ? { ifwi: firmware } : { vbios: firmware }),
        driver: { name: "amdgpu", version: "6.12.12" },
        ras: {
          eeprom_version: "0x30000",
          ecc_block_state: gpu.ecc === false ? "N/A" : { UMC: "ENABLED", GFX: "ENABLED" },
        },
      };
    case "metric":
      return {
        ecc: {
          total_correctable_count: 3,
          total_uncorrectable_count: gpu.uncorrectable ?? 0,
          ...(release === "7.0" ? { total_deferred_count: gpu.deferred ?? 0 } : {}),
        },
        ...(gpu.xgmi === undefined ? {} : { xgmi_err: gpu.xgmi }),
        mem_usage: { total_vram: { value: 196_592, unit: "MB" } },
      };
    case "bad-pages":
      return {
        retired: "No bad pages found.",
        pending: gpu.pending ?? "No bad pages found.",
        un_res: "No bad pages found.",
      };
    case "process":
      return { process_list: gpu.processes ?? IDLE_PROCESSES };
  }
}

const PRELUDE = `S="$MUSTER_ROOT/state"
fresh() { for d in "$MUSTER_ROOT"/sys/bus/pci/devices/*; do if [ "$1" = all ] || [ "$(cat "$d/xgmi_hive_info/xgmi_hive_id" 2>/dev/null)" = "$1" ] || [ "\${d##*/}" = "$1" ]; then echo 299892736 > "$d/mem_info_vram_used"; fi; done; cp "$S"/clean/* "$S/now/"; }
`;

const AMD_SMI = `${PRELUDE}
case $1 in
static|metric|bad-pages|process) [ -e "$S/hang" ] && { trap '' TERM; exec sleep 1000; }
  [ "$2" = --json ] && cat "$S/now/$1" ;;
reset) [ "$2 $3 $5" = "--gpureset --gpu --json" ] || exit 2
  [ -e "$S/reset-fails" ] && { echo '{"error_code": -1000, "error": "Unable to reset"}'; exit 255; }
  echo "reset $4" >> "$S/actions"; d="$MUSTER_ROOT/sys/bus/pci/devices/$4"
  fresh "$(cat "$d/xgmi_hive_info/xgmi_hive_id" 2>/dev/null || echo "$4")" ;;
*) exit 2 ;;
esac`;

const MODULE = (verb: string, line: string): string => `${PRELUDE}
echo "${verb} $1" >> "$S/actions"
${line}`;

export class AmdHost extends HostFolder {
  constructor(gpus: readonly AmdGpu[], release: Release = "7.0") {
    super();
    this.write("proc/devices", "Character devices:\n226 drm\n240 kfd\n\nBlock devices:\n");
    this.write("proc/modules", "amdgpu 1 0 - Live 0x0\n");
    this.outputs("now", gpus, release);
    this.outputs(
      "clean",
      gpus.map((gpu) => ({ pci: gpu.pci })),
      release,
    );
    for (const gpu of gpus) this.#files(gpu);
    for (const [name, script] of Object.entries({
      "amd-smi": AMD_SMI,
      systemctl: "exit 0",
      journalctl: "exit 0",
      rmmod: MODULE("rmmod", ': > "$MUSTER_ROOT/proc/modules"'),
      modprobe: MODULE("modprobe", 'echo "amdgpu 1 0 - Live 0x0" > "$MUSTER_ROOT/proc/modules"; fresh all'),
    }))
      this.write(`usr/bin/${name}`, `#!/bin/sh\n${script}\n`, 0o755);
    for (const name of ["grep", "tee"]) symlinkSync(`/usr/bin/${name}`, this.path(`usr/bin/${name}`));
  }

  outputs(which: "now" | "clean", gpus: readonly AmdGpu[], release: Release = "7.0"): void {
    for (const command of ["static", "metric", "bad-pages", "process"] as const)
      this.write(`state/${which}/${command}`, amdOutput(command, gpus, release));
  }

  #files(gpu: AmdGpu): void {
    const files: Readonly<Record<string, string>> = {
      vendor: "0x1002",
      class: "0x120000",
      mem_info_vram_total: "206141652992",
      mem_info_vram_used: String(gpu.vramUsed ?? 299_892_736),
      mem_info_gtt_used: "1000",
      current_compute_partition: gpu.computePartition ?? "SPX",
      current_memory_partition: "NPS1",
      unique_id: `a1b2c3d4e5f6${gpu.pci.slice(5, 7)}ff`,
      ...(gpu.hive === undefined ? {} : { "xgmi_hive_info/xgmi_hive_id": gpu.hive }),
      ...(gpu.shader === false ? {} : { run_cleaner_shader: "" }),
    };
    for (const [name, text] of Object.entries(files))
      this.write(`sys/bus/pci/devices/${gpu.pci}/${name}`, text === "" ? "" : `${text}\n`);
  }

  actions(): string[] {
    return this.has("state/actions") ? this.read("state/actions").trimEnd().split("\n") : [];
  }
}
