/**
 * The folders in which Linux distributions install NVIDIA's libraries. A worker process loads no NVIDIA library from any other folder than
 * LIBRARY_FOLDERS.
 */
export const LIBRARY_FOLDERS = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64"] as const;
export const CUDA_LIBRARY = "libcuda.so.1";
