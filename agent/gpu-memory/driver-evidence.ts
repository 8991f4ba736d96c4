import type { TaskResult } from "../../shared/tasks/index.ts";
import type { System } from "../system/system.ts";
import { CUDA_LIBRARY, LIBRARY_FOLDERS } from "./cuda-files.ts";

type FillResult = TaskResult<"node.gpu_fill">;

const PROC = "/proc/driver/nvidia";
const DPKG_TIMEOUT_MS = 60_000;
const MOST_TEXT = 256;

/** What NVIDIA's kernel module says about itself in /proc. The module's registry settings can turn off the driver's clearing of freed GPU memory. */
export async function driverEvidence(system: System): Promise<FillResult["driver"]> {
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

/** Which Debian package owns the CUDA library of NVIDIA's driver, and whether the library still has the bytes of that package. */
export async function libraryEvidence(system: System): Promise<FillResult["library"]> {
  for (const folder of LIBRARY_FOLDERS) {
    if (!(await system.isPresent(`${folder}/${CUDA_LIBRARY}`))) continue;
    const owner = await ran(system, ["--search", `${folder}/${CUDA_LIBRARY}`]);
    // `dpkg --search` prints `package:architecture: path`.
    const name = /^([a-z0-9][a-z0-9+.-]*(?::[a-z0-9]+)?): /m.exec(owner ?? "")?.[1];
    if (name === undefined) return { package: null, is_unchanged: null };
    const changes = await ran(system, ["--verify", name]);
    // `dpkg --verify` prints a line for each file that is missing or has another content, whatever exit status `dpkg` returns.
    return { package: name, is_unchanged: changes === null ? null : !/libcuda[.]so/.test(changes) };
  }
  return { package: null, is_unchanged: null };
}

/**
 * The output of dpkg, or null if the host has no dpkg or dpkg did not end in time. Without an output of dpkg, the evidence says `null`, which does
 * not count as success.
 */
async function ran(system: System, args: readonly string[]): Promise<string | null> {
  return system.run("dpkg", args, DPKG_TIMEOUT_MS).then(
    ({ stdout }) => stdout,
    () => null,
  );
}
