export interface DriverSwitch {
  /**
   * The GPUs for which a registry switch of NVIDIA's driver is set: `all`, or one GPU's PCI address, which is also the name of the GPU's folder in
   * /proc/driver/nvidia/gpus.
   */
  readonly scope: string;
  readonly name: string;
  readonly value: string;
}

export const PARAMS_FILE = "/proc/driver/nvidia/params";
export const GPU_FOLDER = "/proc/driver/nvidia/gpus";
export const registryFile = (gpu: string): string => `${GPU_FOLDER}/${gpu}/registry`;

/**
 * Matches the two lines with registry switches in the file `params` of NVIDIA's driver. All lines of the driver's file `params` except the two with
 * registry switches contain numbers, which NVIDIA's driver prints whether or not somebody set them.
 */
const TEXT_LINE = /^(RegistryDwords|RegistryDwordsPerDevice): "(.*)"$/gm;
/** With the switch RMDisableScrubOnFree, NVIDIA's driver does not zero the GPU memory that a process frees. */
const SCRUB_OFF = "RMDisableScrubOnFree";

/**
 * Reads the registry switches from the file `params` of NVIDIA's driver, for example `RMDisableScrubOnFree=1;RmX=2`. Returns null if `params` lacks
 * one of its two lines with registry switches, because the missing line could hide a switch that is set.
 */
export function switchesInParams(text: string): readonly DriverSwitch[] | null {
  const lines = [...text.matchAll(TEXT_LINE)];
  if (new Set(lines.map(([, name]) => name)).size !== 2) return null;
  return lines.flatMap(([, name, value = ""]) => {
    // The value of `RegistryDwordsPerDevice` begins with the GPU, for example `pci=0000:3b:00.0;RmX=2`.
    let scope = "all";
    return value.split(/[;,]/).flatMap((part) => {
      const [key = "", content = ""] = part.split("=", 2).map((piece) => piece.trim());
      if (key === "") return [];
      if (name === "RegistryDwordsPerDevice" && key === "pci") {
        scope = content;
        return [];
      }
      return [{ scope, name: key, value: content }];
    });
  });
}

/** Reads a GPU's registry switches from its file `registry`, with lines such as `RMDisableScrubOnFree: 0x1`. */
export function switchesInRegistry(gpu: string, text: string): readonly DriverSwitch[] {
  return text.split("\n").flatMap((line) => {
    const parts = /^\s*([^:\s]+)\s*[:=]\s*(.*?)\s*$/.exec(line);
    if (parts === null) return line.trim() === "" ? [] : [{ scope: gpu, name: line.trim().slice(0, 64), value: "" }];
    const [, name = "", value = ""] = parts;
    return value === '""' || value === "" ? [] : [{ scope: gpu, name, value }];
  });
}

/** True if a registry switch keeps NVIDIA's driver from zeroing freed GPU memory. Every value of a registry switch except zero counts as set. */
export const turnsScrubOff = ({ name, value }: DriverSwitch): boolean =>
  name.toLowerCase() === SCRUB_OFF.toLowerCase() && !/^(0x)?0+$/i.test(value);
