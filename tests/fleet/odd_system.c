/* A library to preload, for tests of a system that behaves oddly.
 * If ODD_CLOCK is set, the wall clock jumps each 50 ms: by a day back, an hour ahead, or not at all.
 * SLOW_LOG_MS is how many milliseconds each write to a file `*.jsonl` waits. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *now) {
  static int (*real)(clockid_t, struct timespec *);
  if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
  int result = real(clock, now);
  if (clock == CLOCK_REALTIME && getenv("ODD_CLOCK")) {
    struct timespec steady;
    real(CLOCK_MONOTONIC, &steady);
    int step = (int)(steady.tv_nsec / 50000000 + 20 * steady.tv_sec) % 3;
    now->tv_sec += step == 0 ? -86400 : step == 1 ? 3600 : 0;
  }
  return result;
}

ssize_t write(int file, const void *bytes, size_t count) {
  static ssize_t (*real)(int, const void *, size_t);
  if (!real) real = dlsym(RTLD_NEXT, "write");
  const char *wait = getenv("SLOW_LOG_MS");
  if (wait) {
    char link[64], name[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, name, sizeof name);
    if (length > 6 && memcmp(name + length - 6, ".jsonl", 6) == 0) usleep(1000 * atoi(wait));
  }
  return real(file, bytes, count);
}
