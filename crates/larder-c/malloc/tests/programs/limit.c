/* A limit of the process: malloc answers NULL and ENOMEM, nothing breaks, and memory that was freed can be had again. */
#include "check.h"
#include <sys/resource.h>

static unsigned long now_bytes(void) {
  unsigned long pages = 0;
  FILE *f = fopen("/proc/self/statm", "r");
  CHECK(f && fscanf(f, "%lu", &pages) == 1, " ");
  fclose(f);
  return pages * (unsigned long)sysconf(_SC_PAGESIZE);
}

static void exhaust(size_t size) {
  void **first = NULL;
  long blocks = 0;
  for (;;) {
    errno = 0;
    void **p = opaque(malloc(size));
    if (p == NULL) break;
    memset(p, 0x33, size);
    *p = first;
    first = p;
    blocks++;
  }
  CHECK(errno == ENOMEM, "%d", errno);
  CHECK(blocks > 0, "not one block of %zu", size);
  errno = 0;
  CHECK(opaque(calloc(1, (size_t)1 << 40)) == NULL && errno == ENOMEM, " ");
  while (first) {
    void **next = *first;
    free(first);
    first = next;
  }
  void *again = opaque(malloc(size));
  CHECK(again, "after everything was freed, one of %zu", size);
  free(again);
}

/* limit SIZE...: each until there is no more, one after the other. */
int main(int argc, char **argv) {
  free(opaque(malloc(1)));
  struct rlimit limit = {now_bytes() + (96ul << 20), RLIM_INFINITY};
  if (getenv("LARDER_TEST_RESERVES")) {
    /* Addresses that an allocator reserved at its start are above any limit on addresses already. The limit on data counts
     * what may be used of them. */
    limit.rlim_cur = 96ul << 20;
    CHECK(setrlimit(RLIMIT_DATA, &limit) == 0, " ");
  } else {
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0, " ");
  }
  for (int i = 1; i < argc; i++) exhaust((size_t)atol(argv[i]));
  return done();
}
