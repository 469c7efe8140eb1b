/* Blocks of all sizes that any thread frees or resizes, in phases of much and little live memory: resident memory stays bounded.
   With LARDER_TEST_SECONDS it goes on for so long. */
#include "check.h"
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

enum { THREADS = 4, SLOTS = 1024, LARGEST_LOG = 20, LEAST_LOG = 4 };

struct block { size_t size; unsigned token; };

static _Atomic(struct block *) slots[SLOTS];
static _Atomic size_t live, most_live;
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
  /* Each power of two as often as the others. */
  size_t low = (size_t)1 << (LEAST_LOG + draw(rng) % (LARGEST_LOG - LEAST_LOG));
  size_t n = low + draw(rng) % low;
  return n < sizeof(struct block) + 1 ? sizeof(struct block) + 1 : n;
}

static struct block *made(uint64_t *rng, size_t n) {
  switch (draw(rng) % 4) {
    case 0: return calloc(1, n);
    case 1: return memalign((size_t)16 << draw(rng) % 9, n);
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
  return NULL;
}

static size_t resident(void) {
  char text[100] = {0};
  FILE *f = fopen("/proc/self/statm", "r");
  CHECK(f && fgets(text, sizeof text, f), "statm");
  fclose(f);
  return strtoul(strchr(text, ' '), NULL, 10) * (size_t)sysconf(_SC_PAGESIZE);
}

int main(void) {
  const char *seconds = getenv("LARDER_TEST_SECONDS");
  time_t end = time(NULL) + (seconds ? atol(seconds) : 0);
  size_t most = 0;
  turns = work(4000);
  while (phase < 8 || time(NULL) < end) {
    pthread_t ids[THREADS];
    keep = phase % 4 == 3 ? 1 : 15;
    for (intptr_t i = 0; i < THREADS; i++) CHECK(pthread_create(&ids[i], NULL, churn, (void *)i) == 0, " ");
    for (int i = 0; i < THREADS; i++) pthread_join(ids[i], NULL);
    size_t now = resident();
    if (now > most) most = now;
    if (getenv("LARDER_TEST_STRICT"))
      CHECK(now <= 2 * most_live + ((size_t)96 << 20), "phase %u: %zu resident, at most %zu live", phase, now, most_live);
    phase++;
  }
  dprintf(2, "%u phases, at most %zu MiB live and %zu MiB resident\n", phase, most_live >> 20, most >> 20);
  return done();
}
