/*
 * A stand-in for AMD's libraries HIP and hiprtc, for tests on machines without a GPU. It compiles the text of the agent's kernels with gcc, so that the
 * kernels themselves run over real memory. The file gpu-memory.h says which faults a test can order. Two lines of gpu/control are only for AMD: "vram PATH"
 * names the amdgpu driver's file with the count of used memory, below the folder that stands for the host, and "spills" leaves the count at 0.
 *
 * The build defines GCC, the path of the compiler, and CACHE, a folder for compiled kernels.
 */
#include <dlfcn.h>
#include <sys/stat.h>
#include "gpu-memory.h"

/* The words of HIP in which the kernels' text differs from C. The launch below sets the three numbers before it calls a kernel for one thread. */
static const char *WORDS =
  "#define __global__ __attribute__((visibility(\"default\")))\n"
  "struct muster_place { unsigned x; } blockIdx, blockDim, threadIdx;\n"
  "static void atomicAdd(unsigned long long *to, unsigned long long more) { *to += more; }\n"
  "static void atomicMin(unsigned long long *to, unsigned long long other) { if (other < *to) *to = other; }\n";

EXPORT int hipInit(unsigned flags) { FAULT(hipInit); return flags == 0 ? 0 : 1; }
EXPORT int hipDriverGetVersion(int *version) { FAULT(hipDriverGetVersion); *version = 60342134; return 0; }
EXPORT int hipGetDeviceCount(int *count) {
  FAULT(hipGetDeviceCount);
  const char *rest = control("visible");
  *count = rest ? atoi(rest) : 1;
  return 0;
}
EXPORT int hipSetDevice(int device) { FAULT(hipSetDevice); return device == 0 ? 0 : 101; }
EXPORT int hipDeviceGetPCIBusId(char *text, int length, int device) {
  FAULT(hipDeviceGetPCIBusId);
  const char *rest = control("pci");
  snprintf(text, (size_t)length, "%s", rest ? rest : "0000:c1:00.0");
  return device == 0 ? 0 : 101;
}
EXPORT int hipDeviceTotalMem(size_t *bytes, int device) { FAULT(hipDeviceTotalMem); *bytes = memory(); return device == 0 ? 0 : 101; }
EXPORT int hipDeviceSynchronize(void) { FAULT(hipDeviceSynchronize); return 0; }

static void tell_used(void) {
  char path[1024];
  const char *rest = control("vram");
  if (rest == NULL) return;
  snprintf(path, sizeof path, "%s/%s", getenv("MUSTER_ROOT"), rest);
  FILE *file = fopen(path, "w");
  if (file == NULL) return;
  fprintf(file, "%zu\n", control("spills") ? 0 : held);
  fclose(file);
}
EXPORT int hipMalloc(u64 *address, size_t bytes) { FAULT(hipMalloc); int ok = take(address, bytes); tell_used(); return ok ? 0 : 2; }
EXPORT int hipFree(u64 address) { FAULT(hipFree); int ok = give_back(address); tell_used(); return ok ? 0 : 1; }
EXPORT int hipMemsetD32(u64 address, int value, size_t words) {
  FAULT(hipMemsetD32);
  u32 *at = (u32 *)owned(address, words * 4);
  if (at == NULL) return 1;
  for (size_t i = 0; i < words; i++) at[i] = (u32)value;
  return 0;
}
EXPORT int hipMemcpyDtoH(void *to, u64 from, size_t bytes) {
  FAULT(hipMemcpyDtoH);
  unsigned char *at = owned(from, bytes);
  if (at == NULL) return 1;
  memcpy(to, at, bytes);
  return 0;
}
EXPORT int hipMemcpyHtoD(u64 to, void *from, size_t bytes) {
  FAULT(hipMemcpyHtoD);
  unsigned char *at = owned(to, bytes);
  if (at == NULL) return 1;
  memcpy(at, from, bytes);
  return 0;
}

/* The compiler. A program's code is a whole shared library. */
static char *text, *code, said[4096];
static long code_bytes;

static char *whole(const char *path, long *bytes) {
  FILE *file = fopen(path, "rb");
  if (file == NULL) return NULL;
  fseek(file, 0, SEEK_END);
  *bytes = ftell(file);
  rewind(file);
  char *all = calloc(1, (size_t)*bytes + 1);
  if (all && fread(all, 1, (size_t)*bytes, file) != (size_t)*bytes) all = NULL;
  fclose(file);
  return all;
}

EXPORT int hiprtcCreateProgram(u64 *program, const char *source, const char *name, int headers, void *texts, void *names) {
  FAULT(hiprtcCreateProgram);
  if (headers != 0 || texts || names || name == NULL) return 3;
  text = strdup(source);
  *program = 0xBEE;
  return 0;
}
EXPORT int hiprtcCompileProgram(u64 program, int count, const char **options) {
  static int calls;
  int result = fault("hiprtcCompileProgram", &calls);
  snprintf(said, sizeof said, "%s", result ? "error: unknown target CPU" : "");
  if (result) return result;
  if (program != 0xBEE || count != 1 || strncmp(options[0], "--offload-arch=gfx", 18) != 0) return 5;
  u64 hash = 14695981039346656037u;
  for (const char *at = text; *at; at++) hash = (hash ^ (unsigned char)*at) * 1099511628211u;
  for (const char *at = WORDS; *at; at++) hash = (hash ^ (unsigned char)*at) * 1099511628211u;
  char kept[512], source[600], fresh[600], log[600], command[4096];
  snprintf(kept, sizeof kept, CACHE "/kernels-%016llx.so", (unsigned long long)hash);
  code = whole(kept, &code_bytes);
  if (code) return 0;
  /* Several processes may compile at the same time, because each renames a complete file into place. */
  snprintf(source, sizeof source, "%s.%d.c", kept, (int)getpid());
  snprintf(fresh, sizeof fresh, "%s.%d", kept, (int)getpid());
  snprintf(log, sizeof log, "%s.%d.log", kept, (int)getpid());
  FILE *file = fopen(source, "w");
  if (file == NULL) return 11;
  fprintf(file, "%s%s", WORDS, text);
  fclose(file);
  snprintf(command, sizeof command, GCC " -shared -fPIC -O2 -x c -o %s %s 2>%s", fresh, source, log);
  int failed = system(command);
  long bytes;
  char *words = whole(log, &bytes);
  snprintf(said, sizeof said, "%s", words ? words : "");
  unlink(source);
  unlink(log);
  if (failed) return 6;
  code = whole(fresh, &code_bytes);
  rename(fresh, kept);
  return code ? 0 : 11;
}
EXPORT int hiprtcGetProgramLogSize(u64 program, size_t *bytes) { *bytes = strlen(said) + 1; return program == 0xBEE ? 0 : 4; }
EXPORT int hiprtcGetProgramLog(u64 program, char *log) { strcpy(log, said); return program == 0xBEE ? 0 : 4; }
EXPORT int hiprtcGetCodeSize(u64 program, size_t *bytes) { *bytes = (size_t)code_bytes; return program == 0xBEE && code ? 0 : 4; }
EXPORT int hiprtcGetCode(u64 program, char *to) { memcpy(to, code, (size_t)code_bytes); return program == 0xBEE ? 0 : 4; }

/* A code object carries its own length, so the call has no size. Here the code is an ELF file whose section headers come last. */
static void *module;
EXPORT int hipModuleLoadData(u64 *loaded, const unsigned char *image) {
  FAULT(hipModuleLoadData);
  if (memcmp(image, "\177ELF", 4) != 0) return 200;
  u64 sections; unsigned short each, many;
  memcpy(&sections, image + 0x28, 8);
  memcpy(&each, image + 0x3A, 2);
  memcpy(&many, image + 0x3C, 2);
  char path[1024];
  snprintf(path, sizeof path, "%s/kernels-%d.so", folder(), (int)getpid());
  FILE *file = fopen(path, "wb");
  if (file == NULL) return 304;
  fwrite(image, 1, sections + (u64)each * many, file);
  fclose(file);
  module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  unlink(path);
  *loaded = 0xD00D;
  return module ? 0 : 209;
}
EXPORT int hipModuleGetFunction(u64 *function, u64 loaded, const char *name) {
  FAULT(hipModuleGetFunction);
  if (loaded != 0xD00D) return 400;
  *function = (u64)(uintptr_t)dlsym(module, name);
  return *function ? 0 : 500;
}

typedef void (*fill_kernel)(u64, u32, u32, u32, u32, u32, u32, u32, u32, u32, u32, u32, u32, u32);
typedef void (*check_kernel)(u64, u32, u32, u32, u32, u32, u32, u32, u32, u32, u32, u32, u32, u32, u64, u64);
typedef void (*scan_kernel)(u64, u32, u32, u64);
#define W(i) (*(u32 *)p[i])
#define L(i) (*(u64 *)p[i])
#define STREAM L(0), W(1), W(2), W(3), W(4), W(5), W(6), W(7), W(8), W(9), W(10), W(11), W(12), W(13)

EXPORT int hipModuleLaunchKernel(u64 function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, u64 stream, void **p, void **extra) {
  FAULT(hipModuleLaunchKernel);
  if (gy != 1 || gz != 1 || by != 1 || bz != 1 || shared != 0 || stream != 0 || extra != NULL) return 1;
  if (owned(L(0), (size_t)W(1) * 64) == NULL) return 700;
  struct place { unsigned x; } *block = dlsym(module, "blockIdx"), *width = dlsym(module, "blockDim"), *lane = dlsym(module, "threadIdx");
  void *at = (void *)(uintptr_t)function;
  int is_fill = at == dlsym(module, "muster_fill"), is_check = at == dlsym(module, "muster_check");
  if (!is_fill && owned(is_check ? L(15) : L(3), 16) == NULL) return 700;
  width->x = bx;
  for (block->x = 0; block->x < gx; block->x++)
    for (lane->x = 0; lane->x < bx; lane->x++) {
      if (is_fill) ((fill_kernel)at)(STREAM);
      else if (is_check) ((check_kernel)at)(STREAM, L(14), L(15));
      else ((scan_kernel)at)(L(0), W(1), W(2), L(3));
    }
  const char *rest = control("flip");
  if (is_fill && rest && taken[1].at) taken[1].at[strtoull(rest, NULL, 10)] ^= 4; /* taken[0] holds the kernels' counters */
  return 0;
}
