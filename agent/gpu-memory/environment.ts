/** Variables that change which library the loader takes. CUDA's and NVIDIA's own variables are removed by their prefix. */
const LOADER = new Set(["LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT"]);
const VENDOR = /^(CUDA|NVIDIA|NV|NVCC|__NV)_/;

/** The variables of a worker that must go before the worker loads the driver, because a tenant may have left them behind. */
export const foreignVariables = (environment: Readonly<Record<string, string | undefined>>): string[] =>
  Object.keys(environment).filter((name) => LOADER.has(name) || VENDOR.test(name));

/**
 * What the driver reads in the environment of the worker of one GPU. Without the last variable the driver would look for an MPS server, and work
 * through that server.
 */
export const driverVariables = (uuid: string): Readonly<Record<string, string>> => ({
  CUDA_DEVICE_ORDER: "PCI_BUS_ID",
  CUDA_VISIBLE_DEVICES: uuid,
  CUDA_CACHE_DISABLE: "1",
  CUDA_MPS_PIPE_DIRECTORY: "/nonexistent",
});
