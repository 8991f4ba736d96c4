/**
 * Environment variables that make Linux's dynamic loader load another library. `VENDOR` matches CUDA's and NVIDIA's own environment variables by
 * their prefix.
 */
const LOADER = new Set(["LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT"]);
const VENDOR = /^(CUDA|NVIDIA|NV|NVCC|__NV)_/;

/** The environment variables that a worker process removes before it loads NVIDIA's driver, because a tenant may have left them behind. */
export const foreignVariables = (environment: Readonly<Record<string, string | undefined>>): string[] =>
  Object.keys(environment).filter((name) => LOADER.has(name) || VENDOR.test(name));

/**
 * The environment variables with which a worker process loads NVIDIA's driver for one GPU. Without `CUDA_MPS_PIPE_DIRECTORY`, NVIDIA's driver would
 * look for an MPS server and work through that server.
 */
export const driverVariables = (uuid: string): Readonly<Record<string, string>> => ({
  CUDA_DEVICE_ORDER: "PCI_BUS_ID",
  CUDA_VISIBLE_DEVICES: uuid,
  CUDA_CACHE_DISABLE: "1",
  CUDA_MPS_PIPE_DIRECTORY: "/nonexistent",
});
