/* Blocks of every size do not overlap, keep what is written, are zero after calloc, and survive realloc in every direction. */
#include "check.h"
#include <malloc.h>

enum { LIVE = 512 };

static size_t size_of(uint64_t r) {
  switch (r % 16) {
    case 0: return r >> 8 & 0xfffff;        /* up to 1 MiB */
    case 1: case 2: return r >> 8 & 0xffff; /* up to 64 KiB */
    case 3: case 4: case 5: return r >> 8 & 0xfff;
    default: return r >> 8 & 0xff;
  }
}

static void every_size(void) {
  for (size_t n = 0; n < 40000; n += n < 1100 ? 1 : 97) {
    unsigned char *p = opaque(malloc(n));
    CHECK(p && (uintptr_t)p % 16 == 0, "%zu: %p", n, (void *)p);
    size_t usable = malloc_usable_size(p);
    CHECK(usable >= n, "%zu of %zu", usable, n);
    memset(p, 0xff, usable); /* all of it may be used */
    free(p);
    p = opaque(calloc(n, 1));
    CHECK(p, "%zu", n);
    for (size_t i = 0; i < n; i++) CHECK(p[i] == 0, "byte %zu of %zu", i, n);
    free(p);
  }
}

static void big_zeroes(void) {
  for (size_t n = 1 << 16; n <= 1 << 25; n *= 2) {
    char *p = opaque(malloc(n));
    CHECK(p, "%zu", n);
    memset(p, 1, n);
    free(p);
    char *q = opaque(calloc(1, n));
    CHECK(q, "%zu", n);
    for (size_t i = 0; i < n; i += 509) CHECK(q[i] == 0, "byte %zu of %zu", i, n);
    free(q);
  }
}

int main(void) {
  static struct { void *p; size_t n; unsigned token; } live[LIVE];
  uint64_t rng = 88172645463325252ull;
  every_size();
  big_zeroes();
  for (long turn = 0; turn < work(30000); turn++) {
    uint64_t r = draw(&rng);
    unsigned slot = (unsigned)(r >> 40) % LIVE;
    size_t n = size_of(draw(&rng));
    if (live[slot].p == NULL) {
      live[slot].p = opaque(r & 1 ? malloc(n) : calloc(1, n));
      CHECK(live[slot].p, "%zu", n);
    } else if (r & 2) {
      size_t kept = n < live[slot].n ? n : live[slot].n;
      CHECK(stamped(live[slot].p, live[slot].n, live[slot].token), "before realloc");
      if (n == 0) n = 1;
      void *moved = opaque(realloc(live[slot].p, n));
      CHECK(moved, "%zu", n);
      CHECK(stamped(moved, kept, live[slot].token), "realloc %zu to %zu", live[slot].n, n);
      live[slot].p = moved;
    } else {
      CHECK(stamped(live[slot].p, live[slot].n, live[slot].token), "%zu bytes", live[slot].n);
      free(live[slot].p);
      live[slot].p = NULL;
      continue;
    }
    live[slot].n = n;
    live[slot].token = (unsigned)turn;
    stamp(live[slot].p, n, (unsigned)turn);
  }
  for (unsigned i = 0; i < LIVE; i++) {
    if (live[i].p) CHECK(stamped(live[i].p, live[i].n, live[i].token), "%zu bytes", live[i].n);
    free(live[i].p);
  }
  return done();
}
