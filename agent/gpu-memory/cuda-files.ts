/** A worker process loads NVIDIA's libraries only from the folders of Linux distributions. */
export const LIBRARY_FOLDERS = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64"] as const;
export const CUDA_LIBRARY = "libcuda.so.1";
