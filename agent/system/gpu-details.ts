import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Inventory } from "../../shared/inventory.ts";
import type { AttemptTool } from "./attempt.ts";
import type { PciGpu } from "./pci-gpus.ts";

const VENDOR_NAMES = { nvidia: "NVIDIA Corporation", amd: "Advanced Micro Devices, Inc. [AMD/ATI]" } as const;
const DEVICES = "sys/bus/pci/devices";
const TIMES = { timeoutMs: 10_000, graceMs: 1_000 };
/** A program that waits in a hanging driver may stay until the host reboots, so the agent asks a hanging driver rarely. */
const AFTER_HANG_MS = 6 * 60 * 60_000;

interface Details {
  readonly model: string;
  readonly memory_bytes: number | null;
  readonly serial: string | null;
}

/**
 * Tells the model and the memory of each GPU on the PCI bus. The agent asks the GPU driver only until it knows a GPU's memory, because a driver often
 * hangs just when a GPU has left the bus, and because no other program may use the GPUs while a task works on them.
 */
export class GpuDetails {
  readonly #root: string;
  readonly #attempt: AttemptTool;
  readonly #times: typeof TIMES;
  readonly #known = new Map<string, Details>();
  #hungAt = Number.NEGATIVE_INFINITY;

  constructor(root: string, attempt: AttemptTool, times = TIMES) {
    this.#root = root;
    this.#attempt = attempt;
    this.#times = times;
  }

  async of(gpus: readonly PciGpu[]): Promise<Inventory["gpus"]> {
    const isNew = (one: PciGpu): boolean => !this.#known.has(one.address);
    const models = gpus.some(isNew) ? await this.#models() : new Map<string, string>();
    const told = gpus.some((one) => one.vendor === "nvidia" && isNew(one))
      ? await this.#nvidia()
      : new Map<string, Details>();
    const found: Inventory["gpus"] = [];
    for (const gpu of gpus) {
      const { vendor, address } = gpu;
      const details = this.#known.get(address) ?? {
        ...(vendor === "amd" ? await amdDetails(join(this.#root, DEVICES, address)) : (told.get(address) ?? UNTOLD)),
        ...(models.has(address) ? { model: models.get(address) ?? "" } : {}),
      };
      if (details.memory_bytes !== null) this.#known.set(address, details);
      found.push({
        vendor: VENDOR_NAMES[vendor],
        model: details.model,
        bus: address,
        memory_bytes: details.memory_bytes,
        ...(details.serial === null ? {} : { serial: details.serial }),
      });
    }
    return found;
  }

  async #models(): Promise<Map<string, string>> {
    const ran = await this.#attempt("lspci", ["-D", "-mm"], this.#times);
    return ran.kind === "ended" ? parseLspci(ran.stdout) : new Map();
  }

  async #nvidia(): Promise<Map<string, Details>> {
    if (performance.now() - this.#hungAt < AFTER_HANG_MS) return new Map();
    const query = ["--query-gpu=pci.bus_id,name,memory.total,serial", "--format=csv,noheader,nounits"];
    const ran = await this.#attempt("nvidia-smi", query, this.#times);
    if (ran.kind === "hung") this.#hungAt = performance.now();
    return ran.kind === "ended" && ran.exitCode === 0 ? parseNvidiaList(ran.stdout) : new Map();
  }
}

/** Reads the lines of `lspci -D -mm`: the address, and then in quotation marks the class, the vendor and the model. */
function parseLspci(output: string): Map<string, string> {
  const lines = output.matchAll(/^([0-9a-f:.]+) "[^"]*" "[^"]*" "([^"]*)"/gim);
  return new Map([...lines].map(([, address = "", model = ""]) => [address.toLowerCase(), model.slice(0, 200)]));
}

/**
 * Reads lines such as `00000000:18:00.0, NVIDIA H100 80GB HBM3, 81559, 1654422006434`. For a GPU without a serial number, `nvidia-smi` prints `[N/A]`
 * in place of the number.
 */
export function parseNvidiaList(output: string): Map<string, Details> {
  const lines = output.matchAll(/^\s*(?:0{4}(?=[0-9a-f]{4}:))?([0-9a-f]+:[0-9a-f:.]+), *(.*), *(\S+), *(\S+) *$/gim);
  return new Map(
    [...lines].map(([, address = "", model = "", mebibytes = "", serial = ""]) => [
      address.toLowerCase(),
      {
        model: model.slice(0, 200),
        memory_bytes: Number(mebibytes) > 0 ? Number(mebibytes) * 1024 * 1024 : null,
        serial: /^\w+$/.test(serial) ? serial.slice(0, 200) : null,
      },
    ]),
  );
}

const UNTOLD: Details = { model: "", memory_bytes: null, serial: null };

/**
 * Reads what the amdgpu driver states about a GPU in the folder of its device. Of the GPU drivers, only amdgpu has the files `mem_info_vram_total`
 * and `unique_id` in the folder of a GPU.
 */
async function amdDetails(device: string): Promise<Details> {
  const textOf = (file: string): Promise<string> =>
    readFile(join(device, file), "utf8").then(
      (text) => text.trim(),
      () => "",
    );
  const bytes = Number(await textOf("mem_info_vram_total"));
  const id = await textOf("unique_id");
  return {
    model: "",
    memory_bytes: Number.isSafeInteger(bytes) && bytes > 0 ? bytes : null,
    // The amdgpu driver writes zeros into the file `unique_id` of a GPU that has no id.
    serial: /^[0-9a-f]{1,32}$/i.test(id) && !/^0+$/.test(id) ? id.toLowerCase() : null,
  };
}
