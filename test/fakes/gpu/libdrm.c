/*
 * A stand-in for the C library of a host with an amdgpu driver, for tests on machines without a GPU. It answers the requests of a DRM device file with
 * real memory, as the kernel does. The structs and the numbers of the requests are built here as the kernel's public headers drm.h and amdgpu_drm.h
 * build them, and the agent builds them on its own. The file gpu-memory.h says which faults a test can order. More lines of gpu/control:
 *
 *   vram PATH, gtt PATH   the amdgpu driver's files with the counts of used memory, below the folder that stands for the host
 *   uncleared             the driver does not clear a new buffer
 *   keeps-gtt             a buffer that was put into the host's memory leaves the count there as it is
 *   evicts                when the GPU's memory is full, another process takes 2 MiB of it
 *   busy                  the GPU never ends its work on a buffer
 *   lost                  the GPU has left the bus, so that all bytes read as 0xff
 *
 * A line "fail CALL RESULT" gives the error number of Linux.
 */
#include <errno.h>
#include <linux/ioctl.h>
#include <time.h>
#include "gpu-memory.h"

union create { struct { u64 bo_size, alignment, domains, domain_flags; } in; struct { u32 handle, pad; } out; };
union map { struct { u32 handle, pad; } in; struct { u64 addr_ptr; } out; };
union wait { struct { u32 handle, flags; u64 timeout; } in; struct { u32 status, domain; } out; };
struct close { u32 handle, pad; };

#define GEM_CREATE _IOWR('d', 0x40 + 0x00, union create)
#define GEM_MMAP _IOWR('d', 0x40 + 0x01, union map)
#define GEM_WAIT_IDLE _IOWR('d', 0x40 + 0x07, union wait)
#define GEM_CLOSE _IOW('d', 0x09, struct close)
#define DOMAIN_VRAM 0x4
#define VRAM_CLEARED (1 << 3)

/* A buffer with the address 0 lies in the memory of the host. */
static struct { u64 at; size_t bytes; int used; } buffers[MOST];
static size_t gtt, evicted;

#define FAIL(call) do { static int calls; int number = fault(#call, &calls); if (number) { errno = number; return -1; } } while (0)

static void tell(const char *key, size_t bytes) {
  char path[1024];
  const char *rest = control(key);
  if (rest == NULL) return;
  snprintf(path, sizeof path, "%s/%s", getenv("MUSTER_ROOT"), rest);
  FILE *file = fopen(path, "w");
  if (file == NULL) return;
  fprintf(file, "%zu\n", bytes);
  fclose(file);
}
static void tell_used(void) {
  tell("vram", held - evicted);
  tell("gtt", gtt + evicted);
}

static int known(u32 handle) { return handle > 0 && handle < MOST && buffers[handle].used; }
static int refuse(int number) { errno = number; return -1; }

static int create(union create *of) {
  FAIL(gemCreate);
  size_t bytes = of->in.bo_size;
  int clears = (of->in.domain_flags & VRAM_CLEARED) && control("uncleared") == NULL;
  if (of->in.domains != DOMAIN_VRAM || bytes == 0 || bytes % 4096) return refuse(EINVAL);
  u32 handle = 1;
  while (handle < MOST && buffers[handle].used) handle++;
  if (handle == MOST) return refuse(ENOMEM);
  buffers[handle].at = 0;
  buffers[handle].bytes = bytes;
  buffers[handle].used = 1;
  if (take(&buffers[handle].at, bytes)) {
    unsigned char *at = (unsigned char *)(uintptr_t)buffers[handle].at;
    if (clears) memset(at, 0, bytes);
    const char *rest = control("flip");
    if (rest && handle == 1) at[strtoull(rest, NULL, 10)] ^= 4;
  } else {
    gtt += bytes;
    if (control("evicts")) evicted = 2 << 20;
  }
  tell_used();
  memset(of, 0, sizeof *of);
  of->out.handle = handle;
  return 0;
}

static int map(union map *of) {
  FAIL(gemMmap);
  if (!known(of->in.handle)) return refuse(ENOENT);
  of->out.addr_ptr = (u64)of->in.handle << 32;
  return 0;
}

/* The end of a wait must be a time of CLOCK_MONOTONIC that has not passed, and that comes within minutes. */
static int wait_idle(union wait *of) {
  FAIL(gemWaitIdle);
  if (!known(of->in.handle)) return refuse(ENOENT);
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  u64 nanoseconds = (u64)now.tv_sec * 1000000000u + (u64)now.tv_nsec;
  if (of->in.timeout < nanoseconds || of->in.timeout > nanoseconds + 300000000000u) return refuse(EINVAL);
  memset(of, 0, sizeof *of);
  of->out.status = control("busy") != NULL;
  return 0;
}

static int close_buffer(struct close *of) {
  FAIL(gemClose);
  if (!known(of->handle)) return refuse(EINVAL);
  if (buffers[of->handle].at) give_back(buffers[of->handle].at);
  else if (control("keeps-gtt") == NULL) gtt -= buffers[of->handle].bytes;
  buffers[of->handle].used = 0;
  tell_used();
  return 0;
}

EXPORT int ioctl(int file, unsigned long request, void *argument) {
  if (file < 0) return refuse(EBADF);
  switch (request) {
    case GEM_CREATE: return create(argument);
    case GEM_MMAP: return map(argument);
    case GEM_WAIT_IDLE: return wait_idle(argument);
    case GEM_CLOSE: return close_buffer(argument);
    default: return refuse(EINVAL);
  }
}

static int64_t mapped(size_t bytes, int protection, int flags, int64_t offset) {
  FAIL(mmap);
  u32 handle = (u32)((u64)offset >> 32);
  if (!known(handle) || bytes > buffers[handle].bytes || protection != 1 || flags != 1) return refuse(EINVAL);
  if (control("lost")) memset((void *)(uintptr_t)buffers[handle].at, 0xff, bytes);
  return (int64_t)buffers[handle].at;
}
EXPORT int64_t mmap(void *at, size_t bytes, int protection, int flags, int file, int64_t offset) {
  return at != NULL || file < 0 ? refuse(EINVAL) : mapped(bytes, protection, flags, offset);
}
EXPORT int munmap(void *at, size_t bytes) { return at == NULL || bytes == 0 ? refuse(EINVAL) : 0; }

/* The attribute keeps the compiler from turning the loop into a call of the function itself. */
EXPORT __attribute__((optimize("no-tree-loop-distribute-patterns"))) void *memcpy(void *restrict to, const void *restrict from, size_t bytes) {
  for (size_t at = 0; at < bytes; at++) ((unsigned char *)to)[at] = ((const unsigned char *)from)[at];
  return to;
}
