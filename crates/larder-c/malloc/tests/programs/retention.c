/* 512 MiB in blocks of one size, all of them freed, and then no call: says how much stays resident. */
#include "check.h"
#include <fcntl.h>

/* KiB of resident memory, without an allocation. */
static long resident(void) {
  char text[256] = {0};
  int fd = open("/proc/self/statm", O_RDONLY);
  CHECK(fd >= 0 && read(fd, text, sizeof text - 1) > 0, "statm");
  close(fd);
  long all = 0, pages = 0;
  CHECK(sscanf(text, "%ld %ld", &all, &pages) == 2, "%s", text);
  return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static void *blocks[(512 << 20) / 4096];

int main(int argc, char **argv) {
  CHECK(argc > 1, "the size of a block");
  size_t size = (size_t)atol(argv[1]), count = (512 << 20) / size;
  for (size_t i = 0; i < count; i++) {
    blocks[i] = opaque(malloc(size));
    CHECK(blocks[i] != NULL, " ");
    memset(blocks[i], 1, size);
  }
  CHECK(resident() >= 512 << 10, "%ld KiB", resident());
  for (size_t i = 0; i < count; i++) free(blocks[i]);
  long kept = resident();
  printf("resident %ld\n", kept);
  return done();
}
