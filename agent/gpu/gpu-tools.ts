import { join } from "node:path";
import type { GpuVendor } from "../../shared/tasks/gpu-scrub.ts";
import { messageOf } from "../message-of.ts";
import type { System } from "../system/system.ts";
import { AMD_COMMANDS, AMD_FILES, filesByAddress, parseAmdReport } from "./amd-report.ts";
import type { GpuReport, GpuState } from "./gpu-state.ts";
import { callDriver, type Ended, StateUnreadable } from "./gpu-tool.ts";
import { parseNvidiaReport } from "./nvidia-report.ts";
import type { ScrubTiming } from "./scrub-timing.ts";

/** Every method of `GpuTools` may throw `DriverWedged`. */
export interface GpuTools {
  readonly module: string;
  /** Reads the state of all GPUs, or throws `ToolMissing` or `StateUnreadable`. */
  read(): Promise<GpuReport>;
  reset(gpus: readonly GpuState[]): Promise<Ended>;
}

const PCI_DEVICES = "/sys/bus/pci/devices";

export function gpuTools(vendor: GpuVendor, system: System, timing: ScrubTiming): GpuTools {
  return vendor === "nvidia" ? nvidiaTools(system, timing) : amdTools(system, timing);
}

function nvidiaTools(system: System, timing: ScrubTiming): GpuTools {
  const { graceMs } = timing;
  return {
    module: "nvidia",
    read: async () => {
      const ran = await callDriver(system, "nvidia-smi", ["-q", "-x"], { timeoutMs: timing.readMs, graceMs });
      if (ran.exitCode !== 0) throw new StateUnreadable(`nvidia-smi ended with status ${ran.exitCode}: ${ran.said}`);
      return readable(() => parseNvidiaReport(ran.stdout));
    },
    reset: (gpus) =>
      callDriver(system, "nvidia-smi", ["--gpu-reset", "-i", gpus.map(({ pci, uuid }) => uuid ?? pci).join(",")], {
        timeoutMs: timing.resetMs,
        graceMs,
      }),
  };
}

function amdTools(system: System, timing: ScrubTiming): GpuTools {
  const options = { timeoutMs: timing.readMs, graceMs: timing.graceMs };
  const amdSmi = async (command: string): Promise<string> => {
    const ran = await callDriver(system, "amd-smi", [command, "--json"], options);
    if (ran.exitCode === 0) return ran.stdout;
    throw new StateUnreadable(`amd-smi ${command} ended with status ${ran.exitCode}: ${ran.said}`);
  };
  return {
    module: "amdgpu",
    read: async () => {
      const outputs: Record<string, string> = {};
      for (const command of AMD_COMMANDS) outputs[command] = await amdSmi(command);
      const addresses = await amdDevices(system);
      const paths = addresses.flatMap((pci) => AMD_FILES.map((file) => join(system.root, PCI_DEVICES, pci, file)));
      // The separate process `grep` reads the amdgpu driver's files, because a read may hang in the driver. `grep` ends with status 2 if one of its
      // files does not exist.
      const files = paths.length === 0 ? "" : (await callDriver(system, "grep", ["-Hs", "", ...paths], options)).stdout;
      return readable(() =>
        parseAmdReport(
          {
            static: outputs["static"] ?? "",
            metric: outputs["metric"] ?? "",
            "bad-pages": outputs["bad-pages"] ?? "",
            process: outputs["process"] ?? "",
          },
          filesByAddress(files),
        ),
      );
    },
    // A reset of one AMD GPU resets its whole XGMI hive, so amd-smi needs only one call for each hive.
    reset: (gpus) =>
      callDriver(system, "amd-smi", ["reset", "--gpureset", "--gpu", gpus[0]?.pci ?? "", "--json"], {
        timeoutMs: timing.resetMs,
        graceMs: timing.graceMs,
      }),
  };
}

function readable(parse: () => GpuReport): GpuReport {
  try {
    return parse();
  } catch (error) {
    throw new StateUnreadable(messageOf(error));
  }
}

const amdDevices = (system: System): Promise<readonly string[]> => pciGpus(system, "amd");

const PCI_VENDORS: Readonly<Record<GpuVendor, string>> = { nvidia: "0x10de", amd: "0x1002" };

/** The PCI addresses of the vendor's GPUs that the kernel sees, whether or not the GPU driver works. */
export const pciGpus = async (system: System, vendor: GpuVendor): Promise<readonly string[]> =>
  ((await system.pciGpus()) ?? []).filter((gpu) => gpu.vendor === vendor).map(({ address }) => address);

const DRM = "/sys/class/drm";

/** DRM devices of other hardware, for example the BMC's screen, are not among the devices of GPUs. */
export async function drmDevices(system: System, vendor: GpuVendor): Promise<readonly string[]> {
  const found: string[] = [];
  for (const name of (await system.list(DRM)).filter((one) => /^(card|renderD)\d+$/.test(one))) {
    const owner = (await system.read(join(DRM, name, "device/vendor")))?.trim();
    const number = (await system.read(join(DRM, name, "dev")))?.trim();
    if (owner === PCI_VENDORS[vendor] && number !== undefined) found.push(number);
  }
  return found;
}
