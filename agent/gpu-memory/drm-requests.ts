/**
 * The requests to the kernel's DRM device files by which a worker process gets clearing buffers of the amdgpu driver. The ioctl requests have the
 * layouts of the structs in the kernel's public headers `drm.h` and `amdgpu_drm.h`.
 */
const WRITE = 1;
const READ_AND_WRITE = 3;
/** The letter `d` marks all ioctl requests to Linux's DRM drivers. */
const DRM = 0x64;
/** The ioctl requests of a single DRM driver, such as amdgpu, have numbers from 0x40 on. */
const OF_DRIVER = 0x40;

/**
 * The number of an ioctl request consists of the request's direction, the size of its struct, the letter `d`, and its number in the driver
 * (asm-generic/ioctl.h).
 */
const request = (direction: number, bytes: number, number: number): number =>
  ((direction << 30) | (bytes << 16) | (DRM << 8) | number) >>> 0;

export const DRM_REQUESTS = {
  gemCreate: request(READ_AND_WRITE, 32, OF_DRIVER + 0x00),
  gemMmap: request(READ_AND_WRITE, 8, OF_DRIVER + 0x01),
  gemWaitIdle: request(READ_AND_WRITE, 16, OF_DRIVER + 0x07),
  gemClose: request(WRITE, 8, 0x09),
} as const;
export type DrmRequest = keyof typeof DRM_REQUESTS;

/** The amdgpu driver may place each of the worker process's buffers only in the GPU's own memory. */
const DOMAIN_VRAM = 0x4n;
/**
 * The flag by which the worker process asks the driver to clear a buffer. Newer amdgpu drivers set the flag for clearing by themselves for each
 * buffer of a process.
 */
const VRAM_CLEARED = 0x8n;

/**
 * `union drm_amdgpu_gem_create`: size, alignment, domains and flags. In its answer to `gemCreate`, the driver replaces the first four bytes of the
 * struct by the buffer's handle.
 */
export function gemCreate(bytes: number): Buffer {
  const struct = Buffer.alloc(32);
  struct.writeBigUInt64LE(BigInt(bytes), 0);
  struct.writeBigUInt64LE(DOMAIN_VRAM, 16);
  struct.writeBigUInt64LE(VRAM_CLEARED, 24);
  return struct;
}
export const handleIn = (struct: Buffer): number => struct.readUInt32LE(0);

/** `union drm_amdgpu_gem_wait_idle`: handle, flags, and the end of the wait in nanoseconds of CLOCK_MONOTONIC. */
export function gemWaitIdle(handle: number, until: bigint): Buffer {
  const struct = Buffer.alloc(16);
  struct.writeUInt32LE(handle, 0);
  struct.writeBigUInt64LE(until, 8);
  return struct;
}
/** The first four bytes of the driver's answer to `gemWaitIdle` are 0 if the GPU no longer works on the buffer. */
export const isIdle = (struct: Buffer): boolean => struct.readUInt32LE(0) === 0;

/** `union drm_amdgpu_gem_mmap` or `struct drm_gem_close`, which both begin with a buffer's handle. */
export function ofHandle(handle: number): Buffer {
  const struct = Buffer.alloc(8);
  struct.writeUInt32LE(handle, 0);
  return struct;
}
/** The answer of `gemMmap` is the offset at which a process maps the buffer from the device file. */
export const mmapOffsetIn = (struct: Buffer): bigint => struct.readBigUInt64LE(0);
