/*
 * A stand-in for NVIDIA's driver library, for tests on machines without a GPU. It exports the symbols that the agent uses, takes real memory, and
 * computes what the agent's kernels compute. The file gpu-memory.h says which faults a test can order.
 */
#include "gpu-memory.h"

EXPORT int cuInit(unsigned flags) { FAULT(cuInit); return flags == 0 ? 0 : 1; }
EXPORT int cuDriverGetVersion(int *version) { FAULT(cuDriverGetVersion); *version = 13000; return 0; }
EXPORT int cuDeviceGetCount(int *count) {
  FAULT(cuDeviceGetCount);
  const char *rest = control("visible");
  *count = rest ? atoi(rest) : 1;
  return 0;
}
EXPORT int cuDeviceGet(int *device, int ordinal) { FAULT(cuDeviceGet); *device = 7; return ordinal == 0 ? 0 : 101; }

EXPORT int cuDeviceGetUuid_v2(unsigned char *uuid, int device) {
  FAULT(cuDeviceGetUuid_v2);
  /* As with the driver, CUDA_VISIBLE_DEVICES selects the GPU by its UUID. */
  const char *rest = control("uuid");
  const char *shown = getenv("CUDA_VISIBLE_DEVICES");
  char digits[40] = {0};
  if (rest) snprintf(digits, sizeof digits, "%s", rest);
  else if (shown && strncmp(shown, "GPU-", 4) == 0)
    for (const char *from = shown + 4; *from && strlen(digits) < 32; from++) if (*from != '-') digits[strlen(digits)] = *from;
  for (int i = 0; i < 16; i++) { unsigned byte = 0; sscanf(digits + 2 * i, "%2x", &byte); uuid[i] = (unsigned char)byte; }
  return device == 7 ? 0 : 101;
}
EXPORT int cuDeviceGetPCIBusId(char *text, int length, int device) {
  FAULT(cuDeviceGetPCIBusId);
  const char *rest = control("pci");
  snprintf(text, (size_t)length, "%s", rest ? rest : "0000:3B:00.0");
  return device == 7 ? 0 : 101;
}
EXPORT int cuDeviceTotalMem_v2(size_t *bytes, int device) { FAULT(cuDeviceTotalMem_v2); *bytes = memory(); return device == 7 ? 0 : 101; }
EXPORT int cuDevicePrimaryCtxRetain(u64 *context, int device) { FAULT(cuDevicePrimaryCtxRetain); *context = 0xC0FFEE; return device == 7 ? 0 : 101; }
EXPORT int cuCtxSetCurrent(u64 context) { FAULT(cuCtxSetCurrent); return context == 0xC0FFEE ? 0 : 201; }
EXPORT int cuCtxSynchronize(void) { FAULT(cuCtxSynchronize); return 0; }

EXPORT int cuMemAlloc_v2(u64 *address, size_t bytes) { FAULT(cuMemAlloc_v2); return take(address, bytes) ? 0 : 2; }
EXPORT int cuMemFree_v2(u64 address) { FAULT(cuMemFree_v2); return give_back(address) ? 0 : 1; }

EXPORT int cuMemsetD32Async(u64 address, unsigned value, size_t words, u64 stream) {
  FAULT(cuMemsetD32Async);
  u32 *at = (u32 *)owned(address, words * 4);
  if (at == NULL || stream != 0) return 1;
  for (size_t i = 0; i < words; i++) at[i] = value;
  return 0;
}
EXPORT int cuMemcpyDtoH_v2(void *to, u64 from, size_t bytes) {
  FAULT(cuMemcpyDtoH_v2);
  unsigned char *at = owned(from, bytes);
  if (at == NULL) return 1;
  memcpy(to, at, bytes);
  return 0;
}
EXPORT int cuMemcpyHtoD_v2(u64 to, void *from, size_t bytes) {
  FAULT(cuMemcpyHtoD_v2);
  unsigned char *at = owned(to, bytes);
  if (at == NULL) return 1;
  memcpy(at, from, bytes);
  return 0;
}

EXPORT int cuModuleLoadDataEx(u64 *module, const char *text, unsigned count, int *options, void **values) {
  static int calls;
  int result = fault("cuModuleLoadDataEx", &calls);
  if (result) {
    for (unsigned i = 0; i < count; i++) if (options[i] == 5) strcpy((char *)values[i], "ptxas fatal : unsupported version");
    return result;
  }
  if (strstr(text, ".version 6.3") == NULL || strstr(text, ".target sm_70") == NULL) return 218;
  *module = 0xD00D;
  return 0;
}
EXPORT int cuModuleGetFunction(u64 *function, u64 module, const char *name) {
  FAULT(cuModuleGetFunction);
  static const char *names[] = {"muster_fill", "muster_check", "muster_scan"};
  if (module != 0xD00D) return 400;
  for (u64 i = 0; i < 3; i++) if (strcmp(names[i], name) == 0) { *function = i + 1; return 0; }
  return 500;
}

static u32 rotl(u32 value, int by) { return value << by | value >> (32 - by); }
static void quarter(u32 *s, int a, int b, int c, int d) {
  s[a] += s[b]; s[d] = rotl(s[d] ^ s[a], 16);
  s[c] += s[d]; s[b] = rotl(s[b] ^ s[c], 12);
  s[a] += s[b]; s[d] = rotl(s[d] ^ s[a], 8);
  s[c] += s[d]; s[b] = rotl(s[b] ^ s[c], 7);
}
static void stream_block(u32 *out, u32 counter, void **p) {
  u32 initial[16] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574};
  for (int i = 0; i < 8; i++) initial[4 + i] = *(u32 *)p[3 + i];
  initial[12] = counter;
  for (int i = 0; i < 3; i++) initial[13 + i] = *(u32 *)p[11 + i];
  memcpy(out, initial, 64);
  for (int round = 0; round < 10; round++) {
    for (int i = 0; i < 4; i++) quarter(out, i, 4 + i, 8 + i, 12 + i);
    for (int i = 0; i < 4; i++) quarter(out, i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4);
  }
  for (int i = 0; i < 16; i++) out[i] += initial[i];
}

EXPORT int cuLaunchKernel(u64 function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, u64 stream, void **p, void **extra) {
  FAULT(cuLaunchKernel);
  if (gy != 1 || gz != 1 || by != 1 || bz != 1 || shared != 0 || stream != 0 || extra != NULL) return 1;
  const char *rest = control("slow");
  if (rest) usleep((useconds_t)atoi(rest));
  u64 address = *(u64 *)p[0];
  u32 count = *(u32 *)p[1];
  if ((u64)gx * bx < count) return 1;
  u32 *at = (u32 *)owned(address, (size_t)count * 64);
  if (at == NULL) return 700;
  u32 block[16];
  if (function == 1) {
    for (u32 i = 0; i < count; i++) { stream_block(block, *(u32 *)p[2] + i, p); memcpy(at + (size_t)i * 16, block, 64); }
    rest = control("flip");
    if (rest && taken[1].at) taken[1].at[strtoull(rest, NULL, 10)] ^= 4; /* taken[0] holds the kernels' counters */
  } else if (function == 2) {
    u64 *found = (u64 *)owned(*(u64 *)p[15], 16);
    if (found == NULL) return 700;
    for (u32 i = 0; i < count; i++) {
      stream_block(block, *(u32 *)p[2] + i, p);
      if (memcmp(at + (size_t)i * 16, block, 64) == 0) continue;
      u64 place = *(u64 *)p[14] + (u64)i * 64;
      found[0]++;
      if (place < found[1]) found[1] = place;
    }
  } else if (function == 3) {
    u32 marker = *(u32 *)p[2];
    u64 *found = (u64 *)owned(*(u64 *)p[3], 16);
    if (found == NULL) return 700;
    for (size_t i = 0; i < (size_t)count * 4; i++) {
      u32 *unit = at + i * 4;
      if (unit[0] | unit[1] | unit[2] | unit[3]) found[0]++;
      if (unit[0] == marker && unit[1] == marker && unit[2] == marker && unit[3] == marker) found[1]++;
    }
  } else return 400;
  return 0;
}

/* NVIDIA's management library has other symbols, so the same file stands for both libraries. */
EXPORT int nvmlInit_v2(void) { FAULT(nvmlInit_v2); return 0; }
EXPORT int nvmlDeviceGetHandleByUUID(const char *uuid, u64 *device) { FAULT(nvmlDeviceGetHandleByUUID); *device = 9; return strncmp(uuid, "GPU-", 4) == 0 ? 0 : 2; }
EXPORT int nvmlDeviceGetMemoryInfo_v2(u64 device, u64 *info) {
  FAULT(nvmlDeviceGetMemoryInfo_v2);
  if (device != 9 || (u32)info[0] != (40u | 2u << 24)) return 2;
  info[1] = memory() + ((u64)3 << 20);
  info[2] = (u64)1 << 20;
  info[3] = memory() - held;
  info[4] = held;
  return 0;
}
