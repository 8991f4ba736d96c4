/** The folder below which AMD's packages install each release of ROCm in a folder of its own, for example `rocm-6.3.1`. */
export const ROCM_PARENT = "/opt";
const SYSTEM_FOLDERS = ["/usr/lib/x86_64-linux-gnu", "/usr/lib64"] as const;
const RELEASE = /^rocm-(\d+)[.](\d+)[.](\d+)$/;

/**
 * Returns the folders in which a worker process looks for AMD's library HIP. The returned list of folders begins with the folder of the newest ROCm
 * release. A worker process loads AMD's libraries only from the folders that `hipFolders` returns.
 */
export const hipFolders = (inOpt: readonly string[]): string[] => [
  ...inOpt
    .flatMap((name) => {
      const [, ...numbers] = RELEASE.exec(name) ?? [];
      return numbers.length === 0 ? [] : [{ name, numbers: numbers.map(Number) }];
    })
    .sort((a, b) => compare(b.numbers, a.numbers))
    .map(({ name }) => `${ROCM_PARENT}/${name}/lib`),
  ...(inOpt.includes("rocm") ? [`${ROCM_PARENT}/rocm/lib`] : []),
  ...SYSTEM_FOLDERS,
];

const compare = (a: readonly number[], b: readonly number[]): number =>
  a.map((one, index) => one - (b[index] ?? 0)).find((difference) => difference !== 0) ?? 0;

/**
 * A ROCm folder may contain two of AMD's libraries: HIP, and hiprtc, AMD's compiler of GPU programs, in the same major version as HIP. In releases of
 * ROCm before hiprtc became a library, HIP's library contains the compiler's calls. Returns null if the folder does not contain HIP.
 */
export function hipLibraries(names: readonly string[]): { readonly hip: string; readonly hiprtc: string } | null {
  const versions = names.flatMap((name) => Number(/^libamdhip64[.]so[.](\d+)$/.exec(name)?.[1] ?? Number.NaN));
  const newest = Math.max(...versions.filter((version) => Number.isInteger(version)));
  if (!Number.isFinite(newest)) return null;
  const [hip, hiprtc] = [`libamdhip64.so.${newest}`, `libhiprtc.so.${newest}`];
  return { hip, hiprtc: names.includes(hiprtc) ? hiprtc : hip };
}
