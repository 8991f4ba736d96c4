import type { GpuVendor } from "../../shared/tasks/gpu-scrub.ts";
import type { TaskResult } from "../../shared/tasks/index.ts";
import type { System } from "../system/system.ts";
import { CUDA_LIBRARY, LIBRARY_FOLDERS } from "./cuda-files.ts";
import { hipFolders, hipLibraries, ROCM_PARENT } from "./hip-files.ts";

type FillResult = TaskResult<"node.gpu_fill">;

const PROC = "/proc/driver/nvidia";
const AMDGPU = "/sys/module/amdgpu";
const DPKG_TIMEOUT_MS = 60_000;
const MOST_TEXT = 256;

/** What the GPUs' kernel module reports about its version and its settings. */
export const driverEvidence = (system: System, vendor: GpuVendor): Promise<FillResult["driver"]> =>
  vendor === "amd" ? amdgpuEvidence(system) : nvidiaEvidence(system);

/** The registry settings of NVIDIA's kernel module can turn off the driver's clearing of freed GPU memory. */
async function nvidiaEvidence(system: System): Promise<FillResult["driver"]> {
  const version = await system.read(`${PROC}/version`);
  if (version === null) return null;
  const parameters = (await system.read(`${PROC}/params`)) ?? "";
  const setting = (name: string): string =>
    (new RegExp(`^${name}: "(.*)"$`, "m").exec(parameters)?.[1] ?? "").slice(0, MOST_TEXT);
  return {
    version: (version.split("\n", 1)[0] ?? "").slice(0, MOST_TEXT),
    registry: setting("RegistryDwords"),
    registry_per_device: setting("RegistryDwordsPerDevice"),
  };
}

/**
 * Only an amdgpu module from AMD's own packages has a version of its own. An amdgpu module that is part of the Linux kernel is identified by the
 * kernel's version.
 */
async function amdgpuEvidence(system: System): Promise<FillResult["driver"]> {
  if (!(await system.isPresent(AMDGPU))) return null;
  const own = (await system.read(`${AMDGPU}/version`))?.trim() ?? "of the kernel";
  const kernel = (await system.read("/proc/sys/kernel/osrelease"))?.trim() ?? "of an unknown version";
  return { version: `amdgpu ${own}, Linux ${kernel}`.slice(0, MOST_TEXT), registry: "", registry_per_device: "" };
}

/** Which Debian package owns the library of the GPUs' driver, and whether the library still has the bytes of that package. */
export async function libraryEvidence(system: System, vendor: GpuVendor): Promise<FillResult["library"]> {
  const path = vendor === "amd" ? await hipLibrary(system) : await cudaLibrary(system);
  const owner = path === null ? null : await ran(system, ["--search", path]);
  // `dpkg --search` prints `package:architecture: path`.
  const name = /^([a-z0-9][a-z0-9+.-]*(?::[a-z0-9]+)?): /m.exec(owner ?? "")?.[1];
  if (name === undefined) return { package: null, is_unchanged: null };
  const changes = await ran(system, ["--verify", name]);
  // `dpkg --verify` prints a line for each file that is missing or has another content, whatever exit status `dpkg` returns.
  return { package: name, is_unchanged: changes === null ? null : !/lib(cuda|amdhip64)[.]so/.test(changes) };
}

async function cudaLibrary(system: System): Promise<string | null> {
  for (const folder of LIBRARY_FOLDERS)
    if (await system.isPresent(`${folder}/${CUDA_LIBRARY}`)) return `${folder}/${CUDA_LIBRARY}`;
  return null;
}

async function hipLibrary(system: System): Promise<string | null> {
  for (const folder of hipFolders(await system.list(ROCM_PARENT))) {
    const found = hipLibraries(await system.list(folder));
    if (found !== null) return `${folder}/${found.hip}`;
  }
  return null;
}

async function ran(system: System, args: readonly string[]): Promise<string | null> {
  return system.run("dpkg", args, DPKG_TIMEOUT_MS).then(
    ({ stdout }) => stdout,
    () => null,
  );
}
