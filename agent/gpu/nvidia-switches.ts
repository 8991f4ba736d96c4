/** The registry switches of the NVIDIA driver that were set by a file of modprobe or a parameter, for the whole driver or for one GPU. */
export interface DriverSwitch {
  /** `all`, or the folder of the GPU in `/proc/driver/nvidia/gpus`, which is its PCI address. */
  readonly scope: string;
  readonly name: string;
  readonly value: string;
}

export const PARAMS_FILE = "/proc/driver/nvidia/params";
export const GPU_FOLDER = "/proc/driver/nvidia/gpus";
export const registryFile = (gpu: string): string => `${GPU_FOLDER}/${gpu}/registry`;

/** Lines of the file `params` with a text of switches. The other lines of the file are numbers, which the driver prints whether or not they are set. */
const TEXT_LINE = /^(RegistryDwords|RegistryDwordsPerDevice): "(.*)"$/gm;
/** With this switch the driver does not zero memory that a process frees. */
const SCRUB_OFF = "RMDisableScrubOnFree";

/**
 * Reads the switches from the file `params`: `RegistryDwords: "RMDisableScrubOnFree=1;RmX=2"`. Returns null if the file lacks its two lines, because
 * switches that cannot be read may be set.
 */
export function switchesInParams(text: string): readonly DriverSwitch[] | null {
  const lines = [...text.matchAll(TEXT_LINE)];
  if (new Set(lines.map(([, name]) => name)).size !== 2) return null;
  return lines.flatMap(([, name, value = ""]) => {
    // `RegistryDwordsPerDevice` begins with the GPU: `pci=0000:3b:00.0;RmX=2`.
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

/** Reads the switches of one GPU from its file `registry`, whose lines are `Binary: ""` or `RMDisableScrubOnFree: 0x1`. */
export function switchesInRegistry(gpu: string, text: string): readonly DriverSwitch[] {
  return text.split("\n").flatMap((line) => {
    const parts = /^\s*([^:\s]+)\s*[:=]\s*(.*?)\s*$/.exec(line);
    if (parts === null) return line.trim() === "" ? [] : [{ scope: gpu, name: line.trim().slice(0, 64), value: "" }];
    const [, name = "", value = ""] = parts;
    return value === '""' || value === "" ? [] : [{ scope: gpu, name, value }];
  });
}

/** True if a switch keeps the driver from zeroing freed memory. A value that is not a zero counts as set. */
export const turnsScrubOff = ({ name, value }: DriverSwitch): boolean =>
  name.toLowerCase() === SCRUB_OFF.toLowerCase() && !/^(0x)?0+$/i.test(value);
