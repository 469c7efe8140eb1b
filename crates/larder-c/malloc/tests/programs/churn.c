/* Blocks of all sizes that any thread frees or resizes, in phases of much and little live memory: resident memory stays bounded.
   With LARDER_TEST_SECONDS it goes on for so long, and the second half may need no more than the first. */
#include "check.h"
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

/* Blocks have 2^LEAST_LOG to 2^LARGEST_LOG bytes, and are aligned to 2^LEAST_LOG to 2^ALIGN_LOG. */
enum { THREADS = 4, SLOTS = 512, LEAST_LOG = 4, COMMON_LOG = 20, LARGEST_LOG = 24, ALIGN_LOG = 21 };
enum { MOST_MAPPINGS = 1000 };

struct block { size_t size; unsigned token; };

static _Atomic(struct block *) slots[SLOTS];
static _Atomic size_t live, most_live;
static _Atomic int running;
static long turns;
/* Of 16 turns so many leave a block in the slot. */
static int keep;
static unsigned phase;

/* Both ends, and a byte of each page between them. */
static void fill(struct block *b, size_t n, unsigned token) {
  b->size = n;
  b->token = token;
  unsigned char *at = (unsigned char *)b;
  for (size_t i = 4096; i < n; i += 4096) at[i] = (unsigned char)(token + i / 4096);
  at[n - 1] = (unsigned char)(token * 31u);
}

static void look(const struct block *b) {
  const unsigned char *at = (const unsigned char *)b;
  size_t n = b->size;
  for (size_t i = 4096; i < n - 1; i += 4096)
    CHECK(at[i] == (unsigned char)(b->token + i / 4096), "page %zu of %zu bytes", i / 4096, n);
  CHECK(at[n - 1] == (unsigned char)(b->token * 31u), "the end of %zu bytes", n);
}

static void counted(size_t less, size_t more) {
  size_t now = atomic_fetch_add(&live, more - less) + more - less;
  size_t before = atomic_load(&most_live);
  while (now > before && !atomic_compare_exchange_weak(&most_live, &before, now)) {}
}

static size_t size(uint64_t *rng) {
  /* Each power of two as often as the others, but beyond the common ones each a quarter as often as the one below: its blocks have half
     as many bytes in all. */
  int power = LEAST_LOG + (int)(draw(rng) % (COMMON_LOG - LEAST_LOG));
  while (power >= COMMON_LOG - 1 && power < LARGEST_LOG - 1 && draw(rng) % 4 == 0) power++;
  size_t low = (size_t)1 << power;
  size_t n = low + draw(rng) % low;
  return n < sizeof(struct block) + 1 ? sizeof(struct block) + 1 : n;
}

static struct block *aligned(uint64_t *rng, size_t n) {
  size_t align = (size_t)1 << (LEAST_LOG + draw(rng) % (ALIGN_LOG - LEAST_LOG + 1));
  struct block *at = opaque(memalign(align, n));
  CHECK((uintptr_t)at % align == 0, "%p is no multiple of %zu", (void *)at, align);
  return at;
}

static struct block *made(uint64_t *rng, size_t n) {
  switch (draw(rng) % 4) {
    case 0: return calloc(1, n);
    case 1: return aligned(rng, n);
    default: return malloc(n);
  }
}

static void *churn(void *arg) {
  uint64_t rng = 88172645463325252ull + 1000003u * (phase * THREADS + (unsigned)(intptr_t)arg);
  for (long i = 0; i < turns; i++) {
    _Atomic(struct block *) *slot = &slots[draw(&rng) % SLOTS];
    struct block *old = atomic_exchange(slot, NULL), *new = NULL;
    if (old) look(old);
    if ((int)(draw(&rng) % 16) < keep) {
      size_t n = size(&rng), less = 0;
      if (old && draw(&rng) % 4 == 0) {
        less = old->size;
        new = opaque(realloc(old, n));
        old = NULL;
      } else {
        new = opaque(made(&rng, n));
      }
      CHECK(new, "%zu bytes", n);
      counted(less, n);
      fill(new, n, (unsigned)draw(&rng));
    }
    if (old) {
      counted(old->size, 0);
      free(old);
    }
    if (new && (old = atomic_exchange(slot, new))) {
      counted(old->size, 0);
      free(old);
    }
  }
  atomic_fetch_sub(&running, 1);
  return NULL;
}

/* Both without an allocation. */
static size_t resident(void) {
  char text[256] = {0};
  int fd = open("/proc/self/statm", O_RDONLY);
  CHECK(fd >= 0 && read(fd, text, sizeof text - 1) > 0, "statm");
  close(fd);
  const char *second = strchr(text, ' ');
  CHECK(second != NULL, "%s", text);
  return strtoul(second, NULL, 10) * (size_t)sysconf(_SC_PAGESIZE);
}

static size_t mappings(void) {
  static char text[65536];
  size_t lines = 0;
  ssize_t got;
  int fd = open("/proc/self/maps", O_RDONLY);
  CHECK(fd >= 0, "maps");
  while ((got = read(fd, text, sizeof text)) > 0)
    for (ssize_t i = 0; i < got; i++) lines += text[i] == '\n';
  close(fd);
  return lines;
}

int main(void) {
  const char *text = getenv("LARDER_TEST_SECONDS");
  const int strict = getenv("LARDER_TEST_STRICT") != NULL;
  const time_t begin = time(NULL), seconds = text ? atol(text) : 0;
  const struct timespec nap = {0, 10 * 1000 * 1000};
  /* Of each half. While the threads run, what their heaps keep counts, too. */
  size_t peaks[2] = {0, 0};
  turns = work(4000);
  while (phase < 8 || time(NULL) < begin + seconds) {
    pthread_t ids[THREADS];
    keep = phase % 4 == 3 ? 1 : 15;
    size_t *peak = &peaks[seconds > 0 ? time(NULL) >= begin + seconds / 2 : phase >= 4];
    atomic_store(&running, THREADS);
    for (intptr_t i = 0; i < THREADS; i++) CHECK(pthread_create(&ids[i], NULL, churn, (void *)i) == 0, " ");
    while (atomic_load(&running) > 0) {
      size_t now = resident();
      if (now > *peak) *peak = now;
      nanosleep(&nap, NULL);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(ids[i], NULL);
    size_t now = resident();
    if (strict) CHECK(now <= 2 * most_live + ((size_t)96 << 20), "phase %u: %zu resident, at most %zu live", phase, now, most_live);
    phase++;
  }
  size_t lines = mappings();
  dprintf(2, "%u phases, at most %zu MiB live, %zu and %zu MiB resident in the two halves, %zu mappings\n", phase, most_live >> 20,
          peaks[0] >> 20, peaks[1] >> 20, lines);
  if (strict && seconds > 0)
    CHECK(peaks[1] <= peaks[0] / 10 * 11 + ((size_t)16 << 20), "%zu bytes in the first half, %zu in the second", peaks[0], peaks[1]);
  if (strict) CHECK(lines <= MOST_MAPPINGS, "%zu mappings", lines);
  return done();
}
