/*
 * What the stand-ins for the driver libraries of all vendors share: the memory of the simulated GPU and the faults that a test orders. The file
 * gpu/control in the folder that stands for the host names faults, one a line, and may change while a process uses a library. For one GPU,
 * gpu/control-UUID replaces it:
 *
 *   memory BYTES              the GPU's memory (default 64 MiB)
 *   visible COUNT             how many GPUs the driver shows (default 1)
 *   uuid HEX                  the UUID of the GPU, 32 digits
 *   pci TEXT                  the PCI address
 *   fail CALL RESULT [AFTER]  CALL returns RESULT, from call number AFTER on (default 0)
 *   hang CALL [AFTER]         CALL does not return as long as this line is there
 *   dirty BYTE                new memory is full of this byte; without it new memory is zero
 *   flip OFFSET               after each fill, one bit of the byte at OFFSET of the first allocation is wrong
 *   slow MICROSECONDS         each kernel takes so long
 *
 * A file gpu/held-PID says how many bytes the process holds.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define MOST 4096
typedef uint64_t u64;
typedef uint32_t u32;

static struct { unsigned char *at; size_t bytes; } taken[MOST];
static size_t held;

static const char *folder(void) {
  static char path[512];
  snprintf(path, sizeof path, "%s/gpu", getenv("MUSTER_ROOT") ? getenv("MUSTER_ROOT") : "/nonexistent");
  return path;
}

/* The UUID of the GPU that the environment shows to the process. AMD's runtime takes the UUID in upper case. */
static const char *shown(void) {
  static char uuid[64];
  const char *nvidia = getenv("CUDA_VISIBLE_DEVICES"), *amd = getenv("ROCR_VISIBLE_DEVICES");
  snprintf(uuid, sizeof uuid, "%s", nvidia ? nvidia : amd ? amd : "none");
  if (amd) for (char *at = uuid + 4; *at; at++) if (*at >= 'A' && *at <= 'F') *at += 'a' - 'A';
  return uuid;
}

/* The rest of the control file's line that begins with the key, or NULL. */
static const char *control(const char *key) {
  static char line[512];
  char path[1024];
  snprintf(path, sizeof path, "%s/control-%s", folder(), shown());
  FILE *file = fopen(path, "r");
  if (file == NULL) {
    snprintf(path, sizeof path, "%s/control", folder());
    file = fopen(path, "r");
  }
  if (file == NULL) return NULL;
  const char *found = NULL;
  while (found == NULL && fgets(line, sizeof line, file)) {
    line[strcspn(line, "\n")] = 0;
    size_t length = strlen(key);
    if (strncmp(line, key, length) == 0 && (line[length] == ' ' || line[length] == 0)) found = line + length + (line[length] != 0);
  }
  fclose(file);
  return found;
}

static void tell_held(void) {
  char path[1024];
  snprintf(path, sizeof path, "%s/held-%d", folder(), (int)getpid());
  FILE *file = fopen(path, "w");
  if (file == NULL) return;
  fprintf(file, "%zu\n", held);
  fclose(file);
}

/* Waits until the control file no longer orders it. A file hangs-PID tells that the process hangs. */
static void hang(const char *key) {
  char path[1024];
  snprintf(path, sizeof path, "%s/hangs-%d", folder(), (int)getpid());
  FILE *file = fopen(path, "w");
  if (file) fclose(file);
  while (control(key)) usleep(20000);
  unlink(path);
}

/* Returns the result that the control file orders for this call, or 0. `calls` is the call's own counter. */
static int fault(const char *call, int *calls) {
  char key[128];
  int number = (*calls)++;
  int result = 0, after = 0;
  snprintf(key, sizeof key, "fail %s", call);
  const char *rest = control(key);
  if (rest && sscanf(rest, "%d %d", &result, &after) >= 1 && number >= after) return result;
  snprintf(key, sizeof key, "hang %s", call);
  rest = control(key);
  after = 0;
  if (rest) {
    sscanf(rest, "%d", &after);
    if (number >= after) hang(key);
  }
  return 0;
}
#define FAULT(call) do { static int calls; int result = fault(#call, &calls); if (result) return result; } while (0)

static size_t memory(void) { const char *rest = control("memory"); return rest ? (size_t)strtoull(rest, NULL, 10) : (size_t)64 << 20; }

/* Takes memory of the simulated GPU, or returns 0 if too little is left. */
static int take(u64 *address, size_t bytes) {
  if (held + bytes > memory()) return 0;
  for (int i = 0; i < MOST; i++) {
    if (taken[i].at) continue;
    if (posix_memalign((void **)&taken[i].at, 1 << 12, bytes)) { taken[i].at = NULL; return 0; }
    const char *rest = control("dirty");
    memset(taken[i].at, rest ? atoi(rest) : 0, bytes);
    taken[i].bytes = bytes;
    held += bytes;
    tell_held();
    *address = (u64)(uintptr_t)taken[i].at;
    return 1;
  }
  return 0;
}

static int give_back(u64 address) {
  for (int i = 0; i < MOST; i++) {
    if ((u64)(uintptr_t)taken[i].at != address || address == 0) continue;
    held -= taken[i].bytes;
    free(taken[i].at);
    taken[i].at = NULL;
    tell_held();
    return 1;
  }
  return 0;
}

/* The memory at an address, if the whole of it was allocated. */
static unsigned char *owned(u64 address, size_t bytes) {
  for (int i = 0; i < MOST; i++) {
    u64 from = (u64)(uintptr_t)taken[i].at;
    if (taken[i].at && address >= from && address + bytes <= from + taken[i].bytes) return (unsigned char *)(uintptr_t)address;
  }
  return NULL;
}

