import koffi from "koffi";
import { DRM_REQUESTS, type DrmRequest } from "../../gpu-memory/drm-requests.ts";
import { AGAIN, faultOfErrno } from "../../gpu-memory/drm-results.ts";
import { DriverError } from "../../gpu-memory/faults.ts";
import { loadLibrary } from "./driver-library.ts";

/** The calls of Linux's C library by which a worker process works on a DRM device file. */
const C_CALLS = {
  ioctl: "int ioctl(int file, unsigned long request, void *argument)",
  mmap: "int64_t mmap(void *at, size_t bytes, int protection, int flags, int file, int64_t offset)",
  munmap: "int munmap(int64_t at, size_t bytes)",
  memcpy: "int64_t memcpy(void *to, int64_t from, size_t bytes)",
} as const;

const PROT_READ = 1;
const MAP_SHARED = 1;
const MOST_REPEATS = 100;

export interface Drm {
  /** Sends a request to a DRM device file. Returns 0 if the request succeeded, or Linux's error number if `allowed` contains the number. */
  ioctl(file: number, request: DrmRequest, struct: Buffer, allowed?: readonly number[]): number;
  mmap(file: number, bytes: number, offset: bigint): bigint;
  munmap(address: bigint, bytes: number): void;
  copy(address: bigint, bytes: number): Buffer;
}

/** Loads Linux's C library by its full path. Every Linux host has the C library, so clearing the memory of AMD GPUs needs no library of AMD. */
export function openDrm(path: string): Drm {
  const calls = loadLibrary(path, C_CALLS);
  const failed = (call: string, errno: number) => new DriverError(call, errno, faultOfErrno(errno), "error of Linux");
  return {
    ioctl: (file, request, struct, allowed = []) => {
      for (let repeat = 0; ; repeat += 1) {
        if (calls.ioctl(file, DRM_REQUESTS[request], struct) === 0) return 0;
        const errno = koffi.errno();
        if (AGAIN.includes(errno) && repeat < MOST_REPEATS) continue;
        if (allowed.includes(errno)) return errno;
        throw failed(request, errno);
      }
    },
    mmap: (file, bytes, offset) => {
      const address = calls.mmap(null, bytes, PROT_READ, MAP_SHARED, file, offset);
      if (BigInt(address) === -1n) throw failed("mmap", koffi.errno());
      return BigInt(address);
    },
    munmap: (address, bytes) => {
      if (calls.munmap(address, bytes) !== 0) throw failed("munmap", koffi.errno());
    },
    copy: (address, bytes) => {
      const to = Buffer.alloc(bytes);
      calls.memcpy(to, address, bytes);
      return to;
    },
  };
}
