import type { GpuVendor } from "../../shared/tasks/gpu-scrub.ts";

/**
 * Environment variables that make Linux's dynamic loader load another library. `VENDOR` matches the environment variables of NVIDIA's and AMD's
 * libraries by their prefix.
 */
const LOADER = new Set(["LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT"]);
const VENDOR = /^(CUDA|NVIDIA|NV|NVCC|__NV|HIP|HIPRTC|HSA|ROCR|ROCM|ROC|ROCP|AMD|AMDGPU|GPU|PAL|HCC)_/;

/** The environment variables that a worker process removes before it loads the GPU's driver, because a tenant may have left them behind. */
export const foreignVariables = (environment: Readonly<Record<string, string | undefined>>): string[] =>
  Object.keys(environment).filter((name) => LOADER.has(name) || VENDOR.test(name));

/**
 * The environment variables with which a worker process loads the driver of one GPU. Without `CUDA_MPS_PIPE_DIRECTORY`, NVIDIA's driver would look
 * for an MPS server and work through that server. `ROCR_VISIBLE_DEVICES` hides all other AMD GPUs from AMD's runtime.
 */
export const driverVariables = (vendor: GpuVendor, uuid: string): Readonly<Record<string, string>> =>
  vendor === "amd"
    ? { ROCR_VISIBLE_DEVICES: uuid.toUpperCase() }
    : {
        CUDA_DEVICE_ORDER: "PCI_BUS_ID",
        CUDA_VISIBLE_DEVICES: uuid,
        CUDA_CACHE_DISABLE: "1",
        CUDA_MPS_PIPE_DIRECTORY: "/nonexistent",
      };
