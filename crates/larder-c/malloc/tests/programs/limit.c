/* A limit of the process: malloc answers NULL and ENOMEM, nothing breaks, and memory that was freed can be had again. */
#include "check.h"
#include <pthread.h>
#include <sys/mman.h>
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

static void *nothing(void *arg) { return arg; }

/* A limit on addresses that the program sets itself, below those that an allocator reserved at its start: it goes on, but there are no
 * addresses for others. */
static void limit_addresses(int reserves) {
  struct rlimit limit = {1ul << 30, RLIM_INFINITY};
  CHECK(setrlimit(RLIMIT_AS, &limit) == 0, " ");
  for (int i = 0; i < 100; i++) {
    void *p = opaque(malloc(1 << 20));
    CHECK(p != NULL, "of MiB number %d", i);
    memset(p, 0x33, 1 << 20);
  }
  pthread_t id;
  pthread_attr_t attr;
  /* Larger than the stack of a thread that ended, which may serve again. */
  CHECK(pthread_attr_init(&attr) == 0 && pthread_attr_setstacksize(&attr, 64 << 20) == 0, " ");
  int answer = pthread_create(&id, &attr, nothing, NULL);
  CHECK(answer == (reserves ? EAGAIN : 0), "%d", answer);
  if (!reserves) pthread_join(id, NULL);
  errno = 0;
  void *map = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK((map == MAP_FAILED) == reserves && errno == (reserves ? ENOMEM : 0), "%d", errno);
}

/* limit SIZE...: each until there is no more, one after the other. limit addresses: of those alone. */
int main(int argc, char **argv) {
  free(opaque(malloc(1)));
  int reserves = getenv("LARDER_TEST_RESERVES") != NULL;
  if (argc > 1 && strcmp(argv[1], "addresses") == 0) {
    limit_addresses(reserves);
    return done();
  }
  struct rlimit limit = {now_bytes() + (96ul << 20), RLIM_INFINITY};
  if (reserves) {
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
